"""Type "auto": the ranks choose by measured times how gradients are synchronized."""

from __future__ import annotations

import sys

import pytest

from harness import netns
from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from known_times import logged
from scripts import SCRIPTS
from test_torch_ddp import loss_of, network

SLOW = {"uncompressed": 8.0, "bf16": 4.0, "DDP's bf16_compress_hook": 4.2, "maxmin bits=8": 2.0}
FAST = {"uncompressed": 1.0, "bf16": 1.0, "DDP's bf16_compress_hook": 1.5, "maxmin bits=8": 1.2}


def chosen(
    rank,
    seconds,
    steps=None,
    count=3,
    type=None,
    dtype="float32",
    optimizer="SGD",
    given=False,
    **options,
):
    """Train with type "auto" and fixed measurements. Gradients take the given milliseconds with
    each method on one rank, and less on the other. Methods without a given time take 4 times as
    many as the fastest. Steps take the given seconds.

    Args:
        given: Whether compress() receives the optimizer.
    """

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend

    lines, work = logged(), frontend.Sample.seconds

    def seconds_of(step):
        work(step)
        slow = len(step.method.name) % 2 == rank
        ms = seconds.get(step.method.name, 4 * min(seconds.values(), default=0))
        return ms / 1e3 * (1.0 if slow else 0.1)

    frontend.Sample.seconds = seconds_of
    if steps:
        trials.StepTimer.begin_step = lambda timer: (
            None if timer.over else timer._trial.add(steps.get(timer.method.name, 0.2))
        )
    ddp = DistributedDataParallel(network().to(getattr(torch, dtype)))
    optimizer = getattr(torch.optim, optimizer)(ddp.parameters(), lr=0.1)
    told = {"optimizer": optimizer} if given else {}
    compression = hipress.torch.compress(
        ddp, *([type] if type else []), min_size=1000, **told, **options
    )
    for step in range(count):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=dtype != "float32"):
            loss_of(ddp, rank, step).backward()
        optimizer.step()
    return {
        "weights": b"".join(p.detach().float().numpy().tobytes() for p in ddp.parameters()),
        "explained": compression.explain(),
        "text": str(compression.explain()),
        "hooks": len(ddp._comm_hooks),
        "lines": lines,
        "type": compression.settings.type,
        "params": dict(compression.settings.params),
        "stats": compression.stats(),
        "settled": compression.is_settled,
        "step": compression.step,
    }


def both(*args, **options):
    """Return the results of both ranks, which end with the same choice and the same weights."""
    found = returned(run_ranks(with_options, 2, args, options))
    assert found[0]["weights"] == found[1]["weights"]
    for name in ("explained", "type", "params", "hooks", "step"):
        assert found[0][name] == found[1][name]
    assert not found[1]["lines"]  # rank 0 speaks for all
    return found[0]


def uncompressed(rank):
    """Return the weights of DDP alone after the same training."""
    from torch.nn.parallel import DistributedDataParallel

    ddp = DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        optimizer.step()
    return b"".join(p.detach().numpy().tobytes() for p in ddp.parameters())


def with_options(rank, args, options):
    return chosen(rank, *args, **options)


def test_a_slow_network_gets_a_codec_and_a_sentence():
    found = both(SLOW)
    assert (found["type"], found["params"], found["hooks"]) == ("maxmin", {"bits": 8}, 1)
    (line,) = found["lines"]
    assert line == found["explained"].sentence
    assert line.startswith("auto: maxmin bits=8, the fastest: a step's gradients take 2 ms (")
    assert "uncompressed 8 ms; bf16 4 ms; DDP's bf16_compress_hook 4.2 ms; maxmin bits=6 8" in line
    rows = {row.method: row for row in found["explained"].rows}
    assert (rows["bf16"].gradients_ms, rows["bf16"].sample) == (pytest.approx(4), 1)
    assert [name for name, row in rows.items() if row.chosen] == ["maxmin bits=8"]
    assert found["text"].splitlines()[0] == line and "> maxmin bits=8" in found["text"]
    assert found["stats"].compressed > 0 and found["step"] == 3


def test_a_fast_network_gets_ddps_own_all_reduce():
    found = both(FAST)
    assert found["type"] == "none" and found["settled"] and not found["stats"].compressed
    assert "auto: uncompressed, the fastest: a step's gradients take" in found["lines"][0]
    plain = returned(run_ranks(uncompressed, 2))
    assert found["weights"] == plain[0]
    found = both({**FAST, "maxmin bits=8": 0.95})
    assert found["type"] == "none"
    assert "uncompressed, about as fast as the fastest, maxmin bits=8, and less lossy" in str(
        found["lines"]
    )


def test_16_bits_may_be_ddps_own_hook():
    found = both({**SLOW, "DDP's bf16_compress_hook": 1.0})
    assert found["type"] == "bf16" and found["hooks"] == 1
    reasons = {why for each in found["stats"].parameters.values() for why in each.reasons}
    assert reasons == {"DDP's bf16_compress_hook, by auto"}


def test_steps_of_training_may_show_that_it_does_not_pay():
    fast = dict.fromkeys(SLOW, 0.1)
    found = both(SLOW, fast, count=90)
    assert found["settled"] and found["step"] == 90
    assert found["explained"].rows[0].chosen and "uncompressed 100 ms" in found["lines"][1]
    assert "auto: uncompressed, for in training it is as fast as maxmin bits=8, or" in str(
        found["lines"][1]
    )
    stats = found["stats"]
    assert stats.compressed > 0 and stats.parameters["0.weight"].bytes > stats.compressed / 4


def test_steps_of_training_may_confirm_it():
    found = both(SLOW, {**dict.fromkeys(SLOW, 0.28), "maxmin bits=8": 0.2}, count=90)
    assert found["settled"] and "auto: maxmin bits=8 stays: a step takes" in found["lines"][1]
    assert found["type"] == "maxmin" and found["explained"].rows[3].chosen


def test_gradients_of_16_bits_are_not_made_narrower():
    found = both(SLOW, dtype="bfloat16")
    assert [row.method for row in found["explained"].rows][:2] == ["uncompressed", "maxmin bits=8"]


def alone_or_small(rank):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    ddp = DistributedDataParallel(network())
    return hipress.torch.compress(ddp, min_size=40_001).explain(), len(ddp._comm_hooks)


def test_where_there_is_nothing_to_measure():
    ((explained, hooks),) = returned(run_ranks(alone_or_small, 1))
    assert (explained.sentence, hooks) == ("auto: uncompressed, for there is one rank", 0)
    for explained, hooks in returned(run_ranks(alone_or_small, 2)):
        assert str(explained).endswith("for no gradient has 40001 elements (min_size)")
        assert hooks == 0


def restarted(rank):
    """Save a job's own state with each method, and continue from it with each."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.autotune import frontend

    saved, steps = {}, []
    for name in ("maxmin bits=8", "uncompressed", "bf16"):
        frontend.Sample.seconds = lambda step, name=name: 1.0 if step.method.name == name else 9.0
        for state in [None, *saved.values()]:
            ddp = DistributedDataParallel(network())
            compression = hipress.torch.compress(ddp, min_size=1000)
            if state is not None:
                compression.load_state_dict(state)
            for step in range(2):
                loss_of(ddp, rank, step).backward()
            steps.append(compression.step)
        saved[name] = compression.state_dict()
    ddp = DistributedDataParallel(network())
    told = hipress.torch.compress(ddp, "onebit", min_size=1000)
    loss_of(ddp, rank, 0).backward()
    ddp = DistributedDataParallel(network())
    compression = hipress.torch.compress(ddp, min_size=1000)
    compression.load_state_dict(told.state_dict())
    waited = sorted(compression.error_feedback.to_reshard)
    loss_of(ddp, rank, 1).backward()
    return steps, waited, list(compression.error_feedback.to_reshard)


def test_a_restarted_job_may_choose_another_way():
    for steps, waited, left in returned(run_ranks(restarted, 2)):
        assert steps == [2, 2, 4, 2, 4, 6]  # two more than what was saved
        assert waited == ["0.weight", "2.weight", "4.weight"]  # onebit's residuals, now sent
        assert not left


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"bits": 4}, "no other setting: leave bits out, or name the type that it is for"),
        ({"warmup_steps": 5}, "leave warmup_steps out"),
        ({"plan": "auto"}, "leave plan out"),
        ({"shared_momentum": 0.9}, "leave shared_momentum out"),
        ({"encode_on": "device"}, "leave encode_on out"),
    ],
)
def test_what_it_does_not_take(options, sentence):
    from hipress import CompressionConfig

    config = {"type": "auto", **options}
    with pytest.raises(ValueError, match=f"type 'auto' chooses among .*{sentence}"):
        CompressionConfig.of(config)


def elsewhere(rank):
    """Return the messages of front ends that do not support type "auto"."""
    import os

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.integrations.process_group import settings_from_environment

    os.environ["HIPRESS_COMPRESSION"] = "auto"
    with pytest.raises(ValueError) as error:
        settings_from_environment()
    said = [str(error.value)]
    name = ["auto", "maxmin"][rank]
    with pytest.raises(ValueError, match="differ in compression: 'type=auto' and 'type=maxmin"):
        hipress.torch.compress(DistributedDataParallel(network()), name)
    return said


def test_where_it_does_not_work_yet():
    for sentence in (one for of_rank in returned(run_ranks(elsewhere, 2)) for one in of_rank):
        assert "type 'auto' is not for what this is: it is for DDP" in sentence


def uneven(rank):
    """Train with different numbers of inputs on the ranks, while steps of training are timed."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.autotune import trial as trials
    from hipress.torch.autotune import frontend

    of_method = {"uncompressed": 0.03, "bf16": 0.03, "maxmin bits=8": 0.01}
    frontend.Sample.seconds = lambda step: of_method.get(step.method.name, 0.05)
    trials.StepTimer.begin_step = lambda timer: (
        None if timer.over else timer._trial.add(0.1 * (1 + rank))
    )
    ddp = DistributedDataParallel(network())
    compression = hipress.torch.compress(ddp, min_size=1000)
    with ddp.join():
        for step in range(2 + 100 * rank):
            ddp.zero_grad()
            loss_of(ddp, rank, step).backward()
    return compression.step, compression.is_settled, str(compression.explain())


def test_join_with_uneven_inputs():
    first, second = returned(run_ranks(uneven, 2))
    assert first == second and first[:2] == (102, True)
    assert "auto: uncompressed, for in training" in first[2]


def deserted(rank, when):
    """Return the message of rank 0 when rank 1 dies while they measure, or in a step that is
    timed."""
    import os

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.autotune import frontend

    left, work = [9], frontend.Sample.seconds

    def seconds_of(step):
        left[0] -= 1
        if rank and when == "measuring" and not left[0]:
            os._exit(3)
        work(step)
        return 1.0 if step.method.name == "maxmin bits=8" else 9.0

    frontend.Sample.seconds = seconds_of
    ddp = DistributedDataParallel(network())
    with pytest.raises(hipress.torch.HipressError) as error:
        hipress.torch.compress(ddp, min_size=1000)
        for step in range(20):
            if rank and step == 7:  # in which the first block ends
                os._exit(3)
            loss_of(ddp, rank, step).backward()
    return str(error.value)


@pytest.mark.parametrize("when", ["measuring", "training"])
def test_a_death_is_named(when):
    message, status = run_ranks(deserted, 2, when)
    assert status == "died with status 3"
    assert "rank 1" in message and "died" in message, message


SCRIPT = SCRIPTS / "torch_slow_link.py"


@pytest.mark.slow
@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_a_link_of_100_megabits_it_compresses():
    with (
        netns.ShapedNetwork(2, rate="100mbit", burst="32kb", verify=False) as network,
        TorchJob([sys.executable, str(SCRIPT)], 2, base_environment(), network=network) as job,
    ):
        first, second = (result.output for result in job.wait(90, succeed=True))
    for output in (first, second):  # of compress(), and of DistributedOptimizer
        for said in ("equal True", "type maxmin", "> maxmin bits="):
            assert output.count(said) == 2, output
    assert first[first.index("auto: ") :].splitlines()[0] in second  # both report the same


def measured_without_vectors(rank):
    """Measured gradients are compressed as they will be: nothing is measured of vectors, however
    long they are."""
    import hipress.torch
    from hipress.torch.autotune import frontend

    seen = []
    made = frontend.Sample.__init__

    def note(step, *arguments):
        made(step, *arguments)
        if not step.method.by_framework:
            names = [g.name for bucket in step._gradients for g in bucket]
            counts = [g.count for bucket in step._gradients for g in bucket]
            seen.extend((c, step.settings.compresses(n, c)) for n, c in zip(names, counts))

    frontend.Sample.__init__ = note
    model = torch.nn.Sequential(torch.nn.Linear(64, 3000), torch.nn.Linear(3000, 4))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    hipress.torch.compress(ddp, min_size=100)
    return sorted(set(seen))


def test_vectors_are_measured_as_they_go():
    for seen in returned(run_ranks(measured_without_vectors, 2)):
        assert (3000, False) in seen and (3000, True) not in seen
        assert any(compressed for _, compressed in seen)
