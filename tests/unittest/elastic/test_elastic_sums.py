"""Sums in NumPy arrays whose compression is replaced: the residual still arrives."""

import numpy as np

from elastic_choice import MS
from harness.torch_ranks import returned, run_ranks
from hipress.config import CompressionConfig

SHAPES = {"weight": (64, 96), "bias": (96,)}
SIZES = {"weight": (64 * 96, "float32"), "bias": (96, "float32")}


def engine():
    import torch.distributed as dist

    from hipress.torch.executors.engine import engine_of

    return engine_of(dist.group.WORLD, 20.0)


def gradient(step, rank):
    return np.random.RandomState(100 * step + rank).randn(64 * 96 + 96).astype(np.float32)


def make_step(sums, step, rank):
    """Make a step's sums, one gradient after the other."""
    sums.begin_transaction()
    sums.begin_step()
    (of,) = sums.buckets
    of.flat[:] = gradient(step, rank)
    sums.start(of).result()
    return of.flat.copy()


def replaced(rank):
    """Return whether a step with a codec replacement that is rolled back and repeated has the same
    bits as without a rollback."""
    from hipress.elastic.training.sums import Sums

    def trained():
        config = CompressionConfig.of({"type": "maxminef", "bits": 3, "min_size": 256})
        sums = Sums(engine(), config, SIZES)
        sums.prepare()
        for step in range(3):
            make_step(sums, step, rank)
        return sums

    another = CompressionConfig.of({"type": "maxmin", "bits": 8, "min_size": 256})
    sums = trained()
    before = sums.error_feedback.norm()
    sums.replace(another)
    wanted = make_step(sums, 3, rank)
    after = sums.error_feedback.norm()
    sums = trained()
    sums.begin_transaction()
    sums.replace(another)
    (of,) = sums.buckets
    of.flat[:] = gradient(7, rank)
    sums.start(of).result()
    assert sums.error_feedback.norm() < before / 2  # it was sent
    sums.roll_back()
    assert sums.error_feedback.norm() > before / 2  # its parts are one now
    return before > 0, after == 0, bool((make_step(sums, 3, rank) == wanted).all())


def test_a_codec_that_is_replaced_in_a_step_that_fails_loses_nothing():
    assert returned(run_ranks(replaced, 3)) == [(True, True, True)] * 3


def chosen(rank):
    """Train with error feedback, then uncompressed. Return the sums of all steps with the exact
    ones, and that of the last step."""
    from hipress.elastic.training import tuned_sums

    tuned_sums.TunedSums.time_gradients = lambda sums, method, size: (
        MS.get(method.name, 1000.0) / 1e3,
        size,
    )
    steps = [0]
    sums = tuned_sums.TunedGradients(
        engine(),
        CompressionConfig.of({"type": "auto", "min_size": 256}),
        SHAPES,
        SIZES,
        None,
        step=lambda: steps[0],
        allows_feedback=lambda: True,
    )
    sums.prepare()
    found, types, total, exact = [], [], 0.0, 0.0
    for step in range(30):
        steps[0] = step
        if step == 25:  # as if another network made that the fastest
            sums._controller.choice.choose(0)
        found = make_step(sums, step, rank)
        types.append(sums.config.type)
        mine = sum(gradient(step, each) for each in range(3))
        total, exact = total + found, exact + mine
    assert np.allclose(found, mine, rtol=1e-6, atol=1e-6) and sums.error_feedback.norm() == 0
    return types, float(np.linalg.norm(total - exact) / np.linalg.norm(exact))


def test_a_way_with_error_feedback_is_left_by_a_step_that_sends_what_waits():
    for types, error in returned(run_ranks(chosen, 3)):
        assert types == ["maxminef"] * 25 + ["maxmin"] + ["none"] * 4
        assert error < 0.01
