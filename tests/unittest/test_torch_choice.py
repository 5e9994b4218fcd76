"""Type "auto": the ranks choose by measured times how gradients are synchronised."""

from __future__ import annotations

import math
import sys

import pytest

from harness import netns
from harness.processes import base_environment
from harness.torch_job import TorchJob
from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import loss_of, network

SLOW = {"uncompressed": 8.0, "bf16": 4.0, "DDP's bf16_compress_hook": 4.2, "maxmin bits=8": 2.0}
FAST = {"uncompressed": 1.0, "bf16": 1.0, "DDP's bf16_compress_hook": 1.5, "maxmin bits=8": 1.2}


def chosen(
    rank, seconds, steps=None, count=3, type=None, dtype="float32", optimizer="SGD", given=False,
    **options,
):  # fmt: skip
    """Trains with type "auto", where gradients take so many ms by each way (others 4 times as many
    as the fastest) on one of the ranks, less on the other, and steps so many seconds.

    :param given: whether compress() is told the optimizer
    """
    import logging

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    lines = []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    logging.getLogger("hipress").addHandler(handler)
    logging.getLogger("hipress").setLevel(logging.INFO)

    def seconds_of(step):
        choice.Step.seconds(step)  # it does work
        slow = len(step.way.name) % 2 == rank
        ms = seconds.get(step.way.name, 4 * min(seconds.values(), default=0))
        return ms / 1e3 * (1.0 if slow else 0.1)

    choice._WayStep.seconds = seconds_of
    if steps:
        choice.StepTimer.begin_step = lambda timer: (
            None if timer.over else timer._trial.add(steps.get(timer.way.name, 0.2))
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
    """The results of both ranks, which end with the same choice and the same weights."""
    found = returned(run_ranks(with_options, 2, args, options))
    assert found[0]["weights"] == found[1]["weights"]
    for name in ("explained", "type", "params", "hooks", "step"):
        assert found[0][name] == found[1][name]
    assert not found[1]["lines"]  # rank 0 speaks for all
    return found[0]


def uncompressed(rank):
    """The weights that DDP alone comes to in the same training."""
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
    rows = {row.way: row for row in found["explained"].rows}
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
    assert "uncompressed, about as fast as the fastest, maxmin bits=8, and gentler" in str(
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
    assert found["explained"].rows[0].chosen and found["explained"].rows[0].step_ms == 100
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
    assert [row.way for row in found["explained"].rows][:2] == ["uncompressed", "maxmin bits=8"]


POWERSGD = {**SLOW, "powersgd rank=4": 0.6}


def test_sgd_gets_error_feedback_when_its_first_step_is_seen():
    found = both(POWERSGD)
    assert (found["type"], found["params"]) == ("powersgd", {"rank": 4})
    first, second = found["lines"]
    assert first.startswith("auto: maxmin bits=8, the fastest:")
    assert "powersgd rank=4 0.6 ms (with SGD only)" in first
    assert second.startswith("auto: from step 1 on, as the optimizer is SGD, powersgd rank=4, the")
    assert "with SGD only" not in found["text"] and "> powersgd rank=4" in found["text"]
    assert set(found["stats"].parameters) == {"0.bias", "2.bias", "4.bias"}


def test_sgd_that_is_given_gets_error_feedback_at_once():
    found = both(POWERSGD, given=True)
    (line,) = found["lines"]
    assert found["type"] == "powersgd" and line.startswith("auto: powersgd rank=4, the fastest:")


def test_adam_gets_none():
    found = both(POWERSGD, optimizer="Adam")
    assert found["type"] == "maxmin" and len(found["lines"]) == 1
    assert any(row.way == "maxminef bits=2" for row in found["explained"].rows)
    found = both(POWERSGD, optimizer="AdamW", given=True)
    assert found["type"] == "maxmin"
    rows = found["explained"].rows
    assert not any("maxminef" in row.way for row in rows)  # nor is it measured


def test_what_optimizers_bear():
    from hipress.torch.tuning.optimizers import Optimizers, allows_feedback

    class Own(torch.optim.SGD):
        """One of which nothing is known."""

    one, other = (torch.nn.Parameter(torch.ones(3, 3)) for _ in range(2))
    sgd = torch.optim.SGD([one], lr=0.1, momentum=0.9, nesterov=True)
    assert allows_feedback(sgd) and allows_feedback(torch.optim.SGD([one], lr=0.1))
    assert not allows_feedback(torch.optim.SGD([one], lr=0.1, momentum=0.99))
    assert not allows_feedback(torch.optim.Adam([one])) and not allows_feedback(Own([one]))
    assert Optimizers([one], sgd).allow_feedback is True
    both = Optimizers([one, other], sgd)
    assert both.allow_feedback is None  # that of the other is not known
    torch.optim.SGD([torch.nn.Parameter(torch.ones(3))], lr=0.1).step()
    assert both.allow_feedback is None
    torch.optim.SGD([other], lr=0.1).step()
    assert both.allow_feedback is True
    torch.optim.Adam([other]).step()
    assert both.allow_feedback is False
    with pytest.raises(TypeError, match="takes a torch.optim.Optimizer, not list"):
        Optimizers([one], [sgd])


def wrong_optimizers(rank):
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    ddp = DistributedDataParallel(network())
    sgd, adam = torch.optim.SGD(ddp.parameters(), lr=0.1), torch.optim.Adam(ddp.parameters())
    said = []
    own = sgd if rank else adam
    for args, optimizer in ((["onebit"], sgd), ([], "SGD" if rank else sgd), ([], own)):
        with pytest.raises(ValueError) as error:
            hipress.torch.compress(ddp, *args, optimizer=optimizer)
        said.append(str(error.value))
    return said


def test_wrong_optimizers():
    for said in returned(run_ranks(wrong_optimizers, 2)):
        assert "optimizer= is for type 'auto': leave it out with 'onebit'" in said[0]
        assert "optimizer= takes a torch.optim.Optimizer, not str" in said[1]
        assert "differ in optimizer: 'Adam, without feedback' and 'SGD, with feedback'" in said[2]


def with_vectors(rank):
    """Whether large vectors, and matrices, are compressed."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    choice._WayStep.seconds = lambda step: 1.0 if step.way.name == "maxmin bits=5" else 9.0
    model = torch.nn.Sequential(torch.nn.Linear(4, 5000), torch.nn.LayerNorm(5000))
    ddp = DistributedDataParallel(model)
    compression = hipress.torch.compress(ddp, min_size=1000)
    ddp(torch.ones(2, 4)).square().sum().backward()
    return compression.stats()


def test_vectors_go_as_they_are():
    for stats in returned(run_ranks(with_vectors, 2)):
        assert stats.compressed == 4 * 4 * 5000
        assert {n: each.reasons for n, each in stats.parameters.items()} == {
            name: ["as planned"] for name in ("0.bias", "1.weight", "1.bias")
        }


def left(rank, way, gentler, steps=40):
    """Trains without learning by a way whose residuals are found too large; returns what was sent
    and what should have been, in sum, the sentences, and what is left in residuals."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice, follower
    from hipress.torch.tuning.feedback_guard import residual_norm

    ms = {way: 1.0, gentler: 2.0}
    choice._WayStep.seconds = lambda step: ms.get(step.way.name, 9.0)
    choice.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    follower.MAX_SHARE = 0.5
    ours, plain = DistributedDataParallel(network()), DistributedDataParallel(network())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.0)
    compression = hipress.torch.compress(ours, min_size=1000, optimizer=optimizer)
    types, sums = [], [[torch.zeros_like(p) for p in network().parameters()] for _ in range(2)]
    for step in range(steps):
        for ddp, total in zip((ours, plain), sums):
            ddp.zero_grad()
            loss_of(ddp, rank, step).backward()
            for parameter, each in zip(ddp.parameters(), total):
                each += parameter.grad
        optimizer.step()
        types.append(compression.settings.type)
    flat = [torch.cat([each.flatten() for each in total]) for total in sums]
    error = ((flat[0] - flat[1]).norm() / flat[1].norm()).item()
    return types, error, str(compression.explain()), residual_norm(compression.error_feedback)


@pytest.mark.parametrize(
    ("way", "gentler"),
    [
        ("maxminef bits=2", "uncompressed"),
        ("powersgd rank=4", "maxmin bits=8"),
        ("powersgd rank=4", "maxminef bits=4"),
    ],
)
def test_residuals_that_grow_too_large_are_sent_and_a_gentler_way_goes_on(way, gentler):
    first, second = returned(run_ranks(left, 2, way, gentler))
    assert first[0] == second[0] and first[2] == second[2]
    types, error, said, rest = first
    kinds = list(dict.fromkeys(types))
    flushed = ["maxmin"] if gentler != "maxmin bits=8" else []
    name = "none" if gentler == "uncompressed" else gentler.split()[0]
    assert kinds == [way.split()[0], *flushed, name]
    assert types.count("maxmin") == 1 or not flushed  # one step sends what is left
    assert f"auto: {gentler} from step 24 on, for {way} delays too much: its residuals" in said
    assert "too coarse" in said and f"> {gentler}" in said
    assert error < (0.06 if rest else 0.02) and (rest == 0) == ("ef" not in gentler)


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
    """Saves a job's own state by each way, and goes on from it by each."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    saved, steps = {}, []
    for name in ("maxmin bits=8", "uncompressed", "bf16"):
        choice._WayStep.seconds = lambda step, name=name: 1.0 if step.way.name == name else 9.0
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
    message = ""
    try:
        hipress.torch.compress(DistributedDataParallel(network())).load_state_dict(
            told.state_dict()
        )
    except ValueError as error:
        message = str(error)
    return steps, message


def test_a_restarted_job_may_choose_another_way():
    for steps, message in returned(run_ranks(restarted, 2)):
        assert steps == [2, 2, 4, 2, 4, 6]  # two more than what was saved
        assert "the states of all its ranks are needed" in message  # onebit's residuals


def taken_over(rank, way, next_way):
    """The error of what two jobs have sent, of which the second begins with the first one's state,
    one rank's own, and by another way."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    saved, sums = None, [[torch.zeros_like(p) for p in network().parameters()] for _ in range(2)]
    for name in (way, next_way):
        choice._WayStep.seconds = lambda step, name=name: 1.0 if step.way.name == name else 9.0
        ours, plain = DistributedDataParallel(network()), DistributedDataParallel(network())
        optimizer = torch.optim.SGD(ours.parameters(), lr=0.0)
        compression = hipress.torch.compress(ours, min_size=1000, optimizer=optimizer)
        if saved is not None:
            compression.load_state_dict(saved)
        for step in range(3):
            for ddp, total in zip((ours, plain), sums):
                ddp.zero_grad()
                loss_of(ddp, rank, step).backward()
                for parameter, each in zip(ddp.parameters(), total):
                    each += parameter.grad
        saved = compression.state_dict()
    flat = [torch.cat([each.flatten() for each in total]) for total in sums]
    return ((flat[0] - flat[1]).norm() / flat[1].norm()).item(), compression.settings.type


@pytest.mark.parametrize("next_way", ["uncompressed", "maxmin bits=8", "maxminef bits=2"])
def test_a_restarted_job_takes_over_the_residuals_of_another_way(next_way):
    for error, type in returned(run_ranks(taken_over, 2, "powersgd rank=4", next_way)):
        assert type == ("none" if next_way == "uncompressed" else next_way.split()[0])
        assert error < (0.6 if type == "maxminef" else 0.02)  # which has residuals of its own


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
    """The sentences of front ends that do not take it."""
    import os

    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.integrations.process_group import settings_from_environment

    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    os.environ["HIPRESS_COMPRESSION"] = "auto"
    calls = [
        lambda: hipress.torch.DistributedOptimizer(optimizer, model.named_parameters(), "auto"),
        lambda: hipress.torch.DiLoCo(
            model, optimizer, torch.optim.SGD(model.parameters(), lr=1.0), 4, compression="auto"
        ),
        settings_from_environment,
        lambda: hipress.torch.compress_fsdp(fully_shard(network()), "auto"),
    ]
    said = []
    for call in calls:
        with pytest.raises(ValueError) as error:
            call()
        said.append(str(error.value))
    name = ["auto", "maxmin"][rank]
    with pytest.raises(ValueError, match="differ in compression: 'type=auto' and 'type=maxmin"):
        hipress.torch.compress(DistributedDataParallel(network()), name)
    return said


def test_where_it_does_not_work_yet():
    from hipress import CompressionConfig

    said = [one for of_rank in returned(run_ranks(elsewhere, 2)) for one in of_rank]
    with pytest.raises(ValueError) as error:
        CompressionConfig("auto", min_size=9, topology="ring").store_params()
    for sentence in [*said, str(error.value)]:
        assert "type 'auto' is for hipress.torch.compress() and DistributedDataPar" in sentence


def test_the_rounding_error_is_what_a_codec_makes():
    import numpy as np

    from hipress import Compressor
    from hipress.torch.gradient import Gradient
    from hipress.torch.tuning.guard import Guard, error_of

    generator = torch.Generator().manual_seed(0)
    flat = torch.randn(50_000, generator=generator)
    flat[20_000:].pow_(5)  # few large ones among small ones
    for gradient in (Gradient("even", 0, 20_000), Gradient("uneven", 20_000, 30_000)):
        guard = Guard()
        guard.add(flat, gradient)
        spread = guard.spread()
        part = flat[gradient.offset :][: gradient.count].numpy()
        for bits in (4, 5, 8):
            codec = Compressor("maxmin", bits=bits)
            error = codec.decode(codec.encode(part.copy()), part.size) - part
            real = np.linalg.norm(error) / np.linalg.norm(part)
            assert error_of({"bits": bits}, spread) == pytest.approx(real, rel=0.2)
    assert guard.spread() is None
    for value in (0.0, math.nan, math.inf):
        guard.add(torch.full((2000,), value), Gradient("g", 0, 2000))
        assert guard.spread() == 0
    assert [step for step in range(7, 250) if guard.looks_at(step)] == [7, 107, 207]


def coarse(rank, fastest, spread):
    """Trains by the way that is the fastest, with gradients that have large elements on rank 1."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice, follower

    choice.MAX_ERROR = follower.MAX_ERROR = 0.3
    ms = {fastest: 1.0, "DDP's bf16_compress_hook": 2.0, "maxmin bits=8": 1.5}
    choice._WayStep.seconds = lambda step: ms.get(step.way.name, 4.0)
    choice.StepTimer.begin_step = lambda timer: None if timer.over else timer._trial.add(0.001)
    ddp = DistributedDataParallel(network())
    compression = hipress.torch.compress(ddp, min_size=1000)
    before = str(compression.explain())
    for step in range(14):
        x = torch.randn(8, 64, generator=torch.Generator().manual_seed(step))
        x[:, 0] *= 1 + rank * spread  # one of 64 columns of a gradient is larger than the others
        ddp.zero_grad()
        ddp(x).square().sum().backward()
    bits = b"".join(p.grad.numpy().tobytes() for p in ddp.parameters())
    settings = compression.settings
    return settings.type, dict(settings.params), bits, str(compression.explain()), before


@pytest.mark.parametrize(
    ("fastest", "spread", "type", "params"),
    [
        ("maxmin bits=5", 0, "maxmin", {"bits": 5}),
        ("maxmin bits=5", 100, "maxmin", {"bits": 8}),
        ("maxmin bits=8", 100, "maxmin", {"bits": 8}),
    ],
)
def test_what_is_rounded_too_coarsely_goes_by_a_gentler_way(fastest, spread, type, params):
    first, second = returned(run_ranks(coarse, 2, fastest, spread))
    assert first[:4] == second[:4] and first[:2] == (type, params)
    changes = params != {"bits": int(fastest[-1])}
    assert ("rounds a gradient too coarsely" in first[3]) == changes
    assert f"> {fastest}" in first[4]


def uneven(rank):
    """Ranks with other numbers of inputs, while steps of training are timed."""
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    of_way = {"uncompressed": 0.03, "bf16": 0.03, "maxmin bits=8": 0.01}
    choice._WayStep.seconds = lambda step: of_way.get(step.way.name, 0.05)
    choice.StepTimer.begin_step = lambda timer: (
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
    """The sentence of rank 0 when rank 1 dies while they measure, or in a step that is timed."""
    import os

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch
    from hipress.torch.tuning import choice

    left = [9]

    def seconds_of(step):
        left[0] -= 1
        if rank and when == "measuring" and not left[0]:
            os._exit(3)
        choice.Step.seconds(step)
        return 1.0 if step.way.name == "maxmin bits=8" else 9.0

    choice._WayStep.seconds = seconds_of
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


SCRIPT = """
import sys, torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
import hipress.torch
torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(500, 500))
compression = hipress.torch.compress(model)
for step in range(12):
    model.zero_grad()
    torch.manual_seed(10 * step + dist.get_rank())
    model(torch.randn(4, 500)).square().sum().backward()
same = [torch.zeros(500, 500) for _ in range(dist.get_world_size())]
dist.all_gather(same, model.module.weight.grad)
print("equal", all(torch.equal(same[0], each) for each in same))
print("type", compression.settings.type)
print(compression.explain())
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.skipif(bool(netns.available()), reason=netns.available())
def test_on_a_link_of_100_megabits_it_compresses():
    with (
        netns.ShapedNetwork(2, rate="100mbit", burst="32kb", verify=False) as network,
        TorchJob([sys.executable, "-c", SCRIPT], 2, base_environment(), network=network) as job,
    ):
        first, second = (result.output for result in job.wait(90, succeed=True))
    for output in (first, second):
        assert "equal True" in output and "type maxmin" in output, output
        assert "> maxmin bits=" in output, output
    assert first[first.index("auto: ") :].splitlines()[0] in second  # both say the same
