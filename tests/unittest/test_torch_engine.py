"""What an engine makes of the answers of torch.distributed's operations."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from torch_cluster import torch


class Work:
    """An operation whose waits end as told: an error's text, or "" for a success."""

    def __init__(self, completed: bool, *ends: str) -> None:
        self.completed, self.ends = completed, list(ends)

    def is_completed(self) -> bool:
        return self.completed

    def wait(self, timeout: object) -> None:
        if end := self.ends.pop(0):
            raise RuntimeError(end)


@pytest.fixture
def engine(monkeypatch):
    from hipress.torch import engine

    gloo = SimpleNamespace(name=lambda: "gloo")
    monkeypatch.setattr(engine, "backend", lambda group, device: gloo)
    made = engine.Engine.__new__(engine.Engine)
    made.timeout, made._users = 20.0, None
    made._lost_ranks = lambda: ([2], "")
    made._told = lambda: ""
    return made


def test_an_operation_that_ends_as_a_wait_gives_up_has_not_failed(engine):
    work = Work(True, "Operation timed out!", "")
    engine.wait(work, "the step", torch.device("cpu"))
    assert not work.ends


def test_an_operation_that_failed_says_who_has_died(engine):
    work = Work(True, "Connection closed by peer", "Connection closed by peer")
    with pytest.raises(RuntimeError, match="the step: rank 2 has died: .*Connection closed"):
        engine.wait(work, "the step", torch.device("cpu"))
    assert not work.ends


def test_a_death_that_its_own_connections_tell_late_is_found(engine):
    looks = [([], ""), ([], ""), ([2], "")]
    engine._lost_ranks = lambda: looks.pop(0)
    work = Work(True, "Connection closed by peer", "Connection closed by peer")
    with pytest.raises(RuntimeError, match="the step: rank 2 has died: "):
        engine.wait(work, "the step", torch.device("cpu"))
    assert not looks
