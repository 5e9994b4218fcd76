"""Type "auto" of DiLoCo: its choice with known times, and the effect on the weights."""

from __future__ import annotations

import copy
import sys

import pytest

from harness import netns
from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from known_times import logged
from scripts import SCRIPTS
from test_torch_diloco import diloco_script, inner_of, network, outer_of, train

H = 12
SLOW = {
    "uncompressed": 900,
    "lossless": 800,
    "bf16": 500,
    "maxmin bits=8": 300,
    "maxmin bits=4": 120,
}
FAST = dict.fromkeys(SLOW, 3)
MIDDLE = {**SLOW, "bf16": 11}


def know(ms, step=0.1):
    """Set the milliseconds of synchronizations of the whole model with each method, and the seconds
    of inner steps. Return the lines that are logged."""
    from hipress.autotune import outer_steps
    from hipress.torch.autotune import frontend

    lines, work = logged(), frontend.Sample.seconds
    elements = sum(p.numel() for p in network().parameters())

    def seconds_of(measured):
        work(measured)
        return ms[measured.method.name] / 1e3 * measured.elements / elements

    def took(self, fragment, seconds):
        self._travel[fragment] = ms[self.method.name] / 1e3 / self.schedule.fragments

    frontend.Sample.seconds = seconds_of
    outer_steps.OuterStepController._step_seconds = lambda self: step
    outer_steps.OuterStepController.record_travel = took
    return lines


def made(rank, sync_every=H, **options):
    import hipress.torch

    model = network(seed=rank)
    inner = inner_of(model)
    diloco = hipress.torch.DiLoCo(
        model,
        inner,
        outer_of(model.parameters()),
        sync_every,
        compression="auto",
        min_size=512,
        **options,
    )
    return model, inner, diloco


def chosen(rank, ms, options):
    lines = know(ms)
    model, inner, diloco = made(rank, **options)
    before = diloco.compression.explain().sentence
    with diloco:
        train(model, inner, rank, 2 * H + 1)
    assert before == "auto: nothing is measured before step 3"
    settings, explained = diloco.compression.settings, diloco.compression.explain()
    about = len(diloco._outer.fragments), diloco._scheduler.schedule.delay
    bits = b"".join(w.numpy().tobytes() for w in diloco.state_dict().values() if torch.is_tensor(w))
    return settings.type, dict(settings.params), about, str(explained), lines, bits


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    ("ms", "options", "type", "params", "about", "words"),
    [
        (
            FAST,
            {},
            "none",
            {},
            (1, 0),
            [
                "auto: uncompressed: of 12 steps of 100 ms ranks wait 0.25% of the time",
                "a faster network would not pay",
            ],
        ),
        (MIDDLE, {}, "bf16", {}, (1, 0), ["> bf16"]),
        (
            SLOW,
            {},
            "maxmin",
            {"bits": 4},
            (2, 1),
            [
                "auto: maxmin bits=4 in 2 fragments with a delay of 1 step: of",
                "uncompressed 900 ms",
            ],
        ),
        (SLOW, {"fragments": 1}, "maxmin", {"bits": 4}, (1, 2), ["in one fragment with a delay"]),
        (
            SLOW,
            {"fragment_sync_delay": 0},
            "maxmin",
            {"bits": 4},
            (1, 0),
            ["wait 9.1% of the time", "times as fast; with sync_every=120, too"],
        ),
    ],
)
def test_it_chooses_by_what_ranks_would_wait(ms, options, type, params, about, words):
    found = returned(run_ranks(chosen, 2, ms, options))
    assert found[0][:4] == found[1][:4] and found[0][5] == found[1][5]
    assert found[0][:3] == (type, params, about), found[0]
    assert len(found[0][4]) == 1 and not found[1][4]  # rank 0 speaks for all
    for part in words:
        assert part in found[0][3], found[0][3]


def as_given(rank):
    know(FAST)
    model, inner, diloco = made(0, sync_every=4)
    with diloco:
        train(model, inner, rank, 8)
    return [p.detach().numpy() for p in model.parameters()]


@pytest.mark.slow
def test_on_a_fast_network_it_is_plain_diloco():
    ours = returned(run_ranks(as_given, 2))
    plain = returned(run_ranks(diloco_script, 2, 8, False, {}))
    for a, b in zip(ours, plain):
        assert all((x == y).all() for x, y in zip(a, b))


def resumed(rank):
    """A job that continues from a checkpoint has the same choice, and ends with the same bits."""
    know(SLOW)
    model, inner, diloco = made(rank)
    with diloco:
        train(model, inner, rank, 2 * H - 6)  # the first fragment is in transit
        saved = copy.deepcopy([model.state_dict(), inner.state_dict(), diloco.state_dict()])
        train(model, inner, rank, H, first=2 * H - 6)
    know({**SLOW, "uncompressed": 1.0})
    again, inner, other = made(rank)
    for part, state in zip((again, inner, other), saved):
        part.load_state_dict(state)
    with other:
        train(again, inner, rank, H, first=2 * H - 6)
    for a, b in zip(model.parameters(), again.parameters()):
        assert torch.equal(a, b)
    return saved[2]["auto"], any(key.startswith("under_way/") for key in saved[2])


def test_a_checkpoint_has_the_choice():
    found = returned(run_ranks(resumed, 2))
    assert found[0] == found[1] and found[0][1]
    assert found[0][0].pop("waiting") < 0.01
    assert found[0][0] == {"way": "maxmin bits=4", "fragments": 2, "delay": 1}


def followed(rank, before, after):
    now = dict(before)
    lines = know(now)
    model, inner, diloco = made(rank, sync_every=4)
    types = []
    with diloco:
        for number in range(20):
            if number == 10:
                now.update(after)
            train(model, inner, rank, 4, first=4 * number)
            types.append(diloco.compression.settings.type)
    weights = [w.numpy().tobytes() for k, w in diloco.state_dict().items() if k[:6] == "outer/"]
    return types, lines, weights, str(diloco.compression.explain())


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(("before", "after"), [(FAST, SLOW), (SLOW, FAST)])
def test_another_network_gets_another_choice(before, after):
    found = returned(run_ranks(followed, 2, before, after))
    types, lines, weights, said = found[0]
    assert found[1][0] == types and found[1][2] == weights and found[1][3] == said
    first, second = ("none", "maxmin") if before is FAST else ("maxmin", "none")
    assert set(types[1:10]) == {first} and set(types[15:]) == {second}, (types, lines)
    assert len(lines) == 2 and "times as long as it did; from step" in lines[1], lines


def in_a_group(rank):
    """Return the messages where the group is one rank of each site."""
    import torch.distributed as dist

    groups = [dist.new_group([site]) for site in range(2)]
    try:
        made(rank, group=groups[rank])
    except ValueError as error:
        return [str(error)]


def test_groups_that_may_choose_otherwise_are_refused():
    for (said,) in returned(run_ranks(in_a_group, 2)):
        assert "type auto chooses in each group for itself" in said


SCRIPT = SCRIPTS / "torch_diloco_slow_link.py"


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_a_slow_link_it_compresses_and_hides_the_rest(tmp_path):
    """Type auto of DiLoCo chooses a codec and a delay on a slow link.

    Cost: All methods are measured on a link of 20 Mbit/s, and three outer steps follow.
    """
    environment = {**base_environment(), "HIPRESS_EXPLAIN": str(tmp_path / "job.json")}
    with (
        netns.ShapedNetwork(2, rate="20mbit", burst="32kb", verify=False) as network,
        TorchJob([sys.executable, str(SCRIPT)], 2, environment, network=network) as job,
    ):
        first, second = (result.output for result in job.wait(120, succeed=True))
    for output in (first, second):
        assert "equal True" in output and "type type=maxmin, bits=4," in output, output
        assert "delay 0" not in output and "> maxmin bits=4" in output, output
    said = first[first.index("auto: ") :].splitlines()[0]
    assert said in second and said in (tmp_path / "job.json").read_text()
