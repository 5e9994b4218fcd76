"""Residuals of encode tasks in NumPy arrays, and their moves to other numbers of workers."""

import numpy as np
import pytest

from hipress.runtime.error_feedback import OWN, Codecs, ErrorFeedback, GlobalState
from hipress.topology import topologies
from hipress.topology.graph import Op, worker
from hipress.topology.origins import results

SIZE = 4096


def set_up(num_workers, average, rank=0, states=None):
    """Return the error feedback of one rank whose tasks all have their states."""
    graph = topologies.build("colocated", SIZE, num_workers, home=0, partitions=num_workers)
    feedback = ErrorFeedback(Codecs("onebit", {}, average), rank, num_workers)
    feedback.reshard(states or {})
    final = results(graph)
    for index, task in enumerate(graph.tasks[worker(rank)]):
        if task.op == Op.ENCODE:
            kind = feedback.codecs.kind(task, (worker(rank), index) in final)
            feedback.state_of("weight", graph, index, task, kind)
    return feedback


def residuals(feedback):
    """Return the residuals of the rank's own gradient, and those of means or sums."""
    own, merged = np.zeros(SIZE, np.float32), np.zeros(SIZE, np.float32)
    for key, state in feedback.states.items():
        part = feedback.partitions[key]
        values = own if feedback.kinds[key] == OWN else merged
        values[part.offset : part.offset + part.count] = state.residual
    return own, merged


def with_residuals(num_workers, average):
    feedback = set_up(num_workers, average)
    random = np.random.default_rng(0)
    for key, state in feedback.states.items():
        state.residual = random.standard_normal(feedback.partitions[key].count, np.float32)
    return feedback


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("after", [1, 2, 4])
def test_residual_is_added_to_own_gradient_after_a_change_of_workers(after, average):
    before = with_residuals(3, average)
    own, merged = residuals(before)
    assert merged.any()
    moved = set_up(after, average, states=before.carry_over({"weight": SIZE}))
    factor = np.float32(after if average else 1)
    kept, other = residuals(moved)
    assert (kept == own + merged * factor).all() and not other.any()


def test_residual_that_no_task_has_taken_moves_again():
    before = with_residuals(3, average=True)
    waiting = ErrorFeedback(before.codecs, 0, 2)
    waiting.reshard(before.carry_over({"weight": SIZE}))
    assert waiting.norm() == pytest.approx(before.norm())
    again = set_up(2, True, states=waiting.carry_over({"weight": SIZE}))
    once = set_up(2, True, states=before.carry_over({"weight": SIZE}))
    assert (residuals(again)[0] == residuals(once)[0]).all()


def test_scaled_sum_of_states_is_rounded_once():
    first, second = np.random.default_rng(1).standard_normal((2, SIZE)).astype(np.float32)
    state = GlobalState(SIZE)
    state.add("residual", slice(0, SIZE), first, 1 / 3)
    state.add("residual", slice(0, SIZE), second, 1 / 3)
    third = np.float32(1 / 3)
    exact = first * third + second.astype(np.float64) * third
    assert (state.states["residual"] == exact.astype(np.float32)).all()


def test_state_of_more_elements_than_the_gradient_is_refused():
    with pytest.raises(ValueError, match="elements up to 5 of a gradient that has 4 here"):
        GlobalState(4).add("residual", slice(0, 5), np.zeros(5, np.float32))
