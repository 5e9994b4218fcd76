"""Jobs whose workers have each other's addresses: which workers may join."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor

import pytest

from hipress.errors import HipressError
from hipress.runtime import scheduler
from hipress.runtime.member import JobMember

SECRET = "0123456789abcdef" * 2


def _join_two(identities: tuple[str, str], seconds: int) -> list[object]:
    """Let two workers join one job, and return the error, or None."""
    address: queue.Queue[str] = queue.Queue()
    common = {
        "DMLC_NUM_WORKER": 2,
        "DMLC_NUM_SERVER": 0,
        "DMLC_NODE_HOST": "127.0.0.1",
        "HIPRESS_START_TIMEOUT": seconds,
        "HIPRESS_TIMEOUT": seconds,
    }

    def put(text: str) -> None:
        for _ in identities:
            address.put(text)

    def join(rank: int) -> object:
        try:
            member, started = scheduler.join(
                rank,
                common,
                lambda: "127.0.0.1",
                put,
                lambda: address.get(timeout=seconds),
                "",
                1,
                identities[rank],
            )
        except HipressError as error:
            return error
        joined.append((member, started))
        return None

    joined: list[tuple[JobMember, scheduler.Scheduler | None]] = []
    try:
        with ThreadPoolExecutor(2) as pool:
            return [each.result() for each in [pool.submit(join, rank) for rank in range(2)]]
    finally:
        for member, started in joined:
            member.abort()
            if started is not None:
                started.stop(at_once=True)


@pytest.fixture(autouse=True)
def secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPRESS_SECRET", SECRET)


def test_workers_of_one_view_get_seats() -> None:
    assert _join_two(("2-a/job", "2-a/job"), 30) == [None, None]


@pytest.mark.slow
def test_worker_of_another_view_gets_no_seat_at_a_reused_port() -> None:
    found = _join_two(("2-a/job", "2-b/job"), 3)
    assert all(isinstance(error, HipressError) for error in found), found
    assert "secret" in str(found[1]), found


def test_secrets_of_views_do_not_give_away_the_jobs_own() -> None:
    derived = {scheduler.derived_secret(SECRET, name) for name in ("", "2-a/job", "2-b/job")}
    assert len(derived) == 3 and SECRET in derived
    assert not any(SECRET in each for each in derived - {SECRET})
