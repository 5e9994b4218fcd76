"""Agents of an elastic job on loopback: killed and stopped processes, strangers, notes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
from msgspec.structs import replace

from harness.processes import free_port, wait_until
from hipress.elastic import Agent, ElasticError, Evicted, Member, TrainingOver, View, ViewChanged
from hipress.elastic.membership import channel, evidence, links, messages
from hipress.elastic.membership.agent_thread import AgentThread
from hipress.elastic.membership.channel import HELLO_BYTES, MAGIC, Channel
from hipress.elastic.membership.links import Link
from hipress.elastic.membership.membership_errors import Stranger
from hipress.elastic.membership.notes import Notes
from hipress.elastic.membership.settings import parse_ended
from scripts import SCRIPTS

SECRET = b"0123456789abcdef"
HEARTBEAT = 2.0  # seconds; a busy machine holds a process up for one
PATIENCE = 20.0
QUICK = 8.0  # a view after a death; about 20 ms where nothing else runs
SILENCE_MS = 15_000  # for workers: a worker that is dropped for silence is not dropped within QUICK

WORKER = SCRIPTS / "elastic_agent.py"


def _free_ports(count: int) -> list[int]:
    found: set[int] = set()
    while len(found) < count:
        found.add(free_port())
    return list(found)


class Job:
    """Worker processes by slot, and their output."""

    def __init__(self, slots: int, min_members: int, silence_ms: int) -> None:
        ports = _free_ports(slots)
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HIPRESS_SECRET": SECRET.decode(),
            "HIPRESS_ELASTIC_AGENTS": ",".join(f"127.0.0.1:{port}" for port in ports),
            "HIPRESS_ELASTIC_MIN_WORKERS": str(min_members),
            "HIPRESS_HEARTBEAT_TIMEOUT_MS": str(silence_ms),
        }
        self.processes: dict[int, subprocess.Popen[str]] = {}
        self.said: dict[int, queue.Queue[dict[str, Any]]] = {}

    def start(self, slot: int, restart: int = 0, **more: str) -> None:
        process = subprocess.Popen(
            [sys.executable, str(WORKER)],
            env={
                **self.environment,
                **more,
                "HIPRESS_ELASTIC_SLOT": str(slot),
                "HIPRESS_ELASTIC_RESTART": str(restart),
            },
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        said: queue.Queue[dict[str, Any]] = queue.Queue()
        self.processes[slot], self.said[slot] = process, said

        def read() -> None:
            assert process.stdout is not None
            for line in process.stdout:
                said.put(json.loads(line))

        threading.Thread(target=read, daemon=True).start()

    def signal(self, slot: int, number: int) -> float:
        self.processes[slot].send_signal(number)
        return time.time()

    def wait(self, slot: int, right: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the first output of a worker that satisfies the condition."""
        deadline = time.monotonic() + PATIENCE
        seen = []
        while True:
            try:
                said = self.said[slot].get(timeout=max(deadline - time.monotonic(), 0.01))
            except queue.Empty:
                raise AssertionError(f"slot {slot} only said {seen}") from None
            seen.append(said)
            if right(said):
                return said

    def wait_slots(self, slots: list[int], of: list[int] | None = None) -> list[dict[str, Any]]:
        return [
            self.wait(slot, lambda said: said.get("slots") == slots)
            for slot in (slots if of is None else of)
        ]

    def end(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@pytest.fixture
def job() -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def make(slots: int, min_members: int = 1, silence_ms: int = SILENCE_MS, **more: str) -> Job:
        jobs.append(Job(slots, min_members, silence_ms))
        for slot in range(slots):
            jobs[-1].start(slot, **more)
        jobs[-1].wait_slots(list(range(slots)))
        return jobs[-1]

    try:
        yield make
    finally:
        for each in jobs:
            each.end()


def test_the_others_go_on_within_moments_of_a_death(job: Callable[..., Job]) -> None:
    running = job(4)
    killed = running.signal(0, signal.SIGKILL)
    views = running.wait_slots([1, 2, 3])
    assert all(view["boundary"] is None and view["at"] - killed < QUICK for view in views)
    # Another view of the same members may have followed at once.
    assert {why for view in views for why in view["why"]} <= {"its process has ended"}


def test_two_of_four_die_at_once(job: Callable[..., Job]) -> None:
    running = job(4, min_members=2)
    running.signal(0, signal.SIGKILL)
    killed = running.signal(2, signal.SIGKILL)
    views = running.wait_slots([1, 3])
    assert all(view["at"] - killed < QUICK for view in views)


def test_one_of_four_is_left(job: Callable[..., Job]) -> None:
    running = job(4)
    for slot in (0, 1, 2):
        running.signal(slot, signal.SIGKILL)
    running.wait_slots([3])


@pytest.mark.slow
def test_who_was_stopped_is_evicted_and_joins_again(job: Callable[..., Job]) -> None:
    running = job(3, silence_ms=4000)
    running.signal(1, signal.SIGSTOP)
    views = running.wait_slots([0, 2])
    # Another view of the same members may have followed at once.
    assert all("silent for" in why for view in views for why in view["why"])
    running.signal(1, signal.SIGCONT)
    running.wait(1, lambda said: said["what"] == "evicted")
    views = running.wait_slots([0, 2, 1])
    assert len({view["id"] for view in views}) == 3


def test_a_restarted_process_joins_at_a_boundary(job: Callable[..., Job]) -> None:
    running = job(3)
    running.signal(2, signal.SIGKILL)
    running.wait_slots([0, 1])
    running.start(2, restart=1)
    views = running.wait_slots([0, 1, 2])
    assert len({view["epoch"] for view in views}) == 1
    assert all(view["boundary"] == view["step"] and view["joined"] == 1 for view in views)


def test_a_child_that_lives_on_does_not_hide_a_death(job: Callable[..., Job]) -> None:
    running = job(3, WORKER_FORKS="1")
    killed = running.signal(0, signal.SIGKILL)
    views = running.wait_slots([1, 2])
    assert all(view["at"] - killed < QUICK for view in views)
    assert {why for view in views for why in view["why"]} <= {"its process has ended"}


Start = Callable[..., Agent]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start agents of one job in this process."""
    ports = _free_ports(3)
    agents: list[Agent] = []

    def make(slot: int, secret: bytes = SECRET, min_members: int = 1, **more: Any) -> Agent:
        addresses = [("127.0.0.1", port) for port in ports]
        more.setdefault("heartbeat_timeout", HEARTBEAT)
        agents.append(Agent(addresses, slot, secret, min_members, **more))
        return agents[-1]

    make.ports = ports  # type: ignore[attr-defined]
    try:
        yield make
    finally:
        for agent in agents:
            agent.close()


def _join(agents: list[Agent]) -> list[View]:
    views: dict[int, View] = {}
    threads = [
        threading.Thread(target=lambda at=at, agent=agent: views.update({at: agent.join(PATIENCE)}))
        for at, agent in enumerate(agents)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [views[at] for at in range(len(agents))]


def test_first_view_and_notes(start: Start) -> None:
    agents = [start(slot) for slot in range(3)]
    views = _join(agents)
    assert views[0] == views[1] == views[2]
    view = views[0]
    assert [member.id for member in view.members] == [agent.id for agent in agents]
    assert (view.epoch, view.step, view.source) == (1, 0, agents[0].id)
    assert set(view.behind) == {agents[1].id, agents[2].id}
    agents[0].share(1, "store", "127.0.0.1:5")
    assert [agent.fetch(1, "store", 5) for agent in agents] == ["127.0.0.1:5"] * 3
    with pytest.raises(ElasticError, match="no worker of view 1 has shared 'nothing' after 0.1 s"):
        agents[1].fetch(1, "nothing", 0.1)
    status = agents[2].status()
    assert status["epoch"] == 1 and len(json.loads(json.dumps(status))["members"]) == 3


def test_notes_of_processes_outside_the_view_are_ignored(start: Start) -> None:
    agents = [start(slot, start_timeout=0.5) for slot in range(2)]
    stranger = start(2)  # like a process that returns after a network has healed
    view = _join(agents)[0]
    stranger.share(1, "store", "forged")
    stranger._thread.send_note([view.identity, "store", "forged"], [0, 1])
    with pytest.raises(ElasticError, match="no worker of view 1 has shared 'store'"):
        agents[1].fetch(1, "store", 0.5)
    agents[0].share(1, "store", "right")
    assert agents[1].fetch(1, "store", 5) == "right"


def test_views_of_one_epoch_have_different_identities() -> None:
    members = tuple(Member(f"id{slot}", slot, "host", 1) for slot in range(4))
    halves = View(2, members[:2]), View(2, members[2:])
    assert halves[0].identity != halves[1].identity
    assert View(3, members[:2]).identity != halves[0].identity
    notes = Notes()
    for view, value in zip(halves, "ab"):
        notes.put(view.identity, "key", value)
    assert [notes.get(view.identity, "key") for view in halves] == ["a", "b"]
    for epoch in range(10):
        notes.put(f"{epoch}-another", "key", "c", [halves[0].identity])
    assert notes.get(halves[0].identity, "key") == "a"  # notes of other views do not displace it


def test_an_engines_failure_makes_a_view_of_the_same_members(start: Start) -> None:
    changes: list[View] = []
    agents = [start(slot, on_change=changes.append if slot == 1 else None) for slot in range(3)]
    _join(agents)
    for agent in agents:
        agent.completed(7)
    agents[0].completed(8)
    agents[2].request_change("the engine failed", 1)
    views = [agent.await_view(1, PATIENCE) for agent in agents]
    assert views[0] == views[1] == views[2]
    assert (views[0].step, views[0].source) == (8, agents[0].id)
    assert set(views[0].behind) == {agents[1].id, agents[2].id} and not views[0].joined
    agents[1].request_change("the engine failed", 1)  # too late
    assert changes[-1].epoch == 2
    with pytest.raises(ElasticError, match="no view after view 2 after 0.3 s"):
        agents[0].await_view(2, 0.3)
    with pytest.raises(ViewChanged, match="view 1 has ended"):
        agents[0].fetch(1, "store", 5)


def test_who_asks_to_join_at_the_end_is_told(start: Start) -> None:
    agents = [start(slot, start_timeout=1.0) for slot in range(2)]
    agents.append(start(2, restart=1))
    for agent, view in zip(agents[:2], _join(agents[:2])):
        agent.completed(view.step)
    found = []

    def join() -> None:
        try:
            agents[2].await_view(agents[2].join(PATIENCE).epoch, PATIENCE)
        except ElasticError as error:
            found.append(error)

    late = threading.Thread(target=join)
    late.start()
    agents[0].share(1, "over", "1")
    late.join(PATIENCE)
    assert isinstance(found[0], TrainingOver)
    agents[0].completed(1)  # these two have the job's state, and their views continue
    agents[1].request_change("a test", 1)
    assert agents[0].await_view(1, PATIENCE).epoch == 2


def test_who_is_waited_for_in_vain_leaves(start: Start) -> None:
    changes: list[View] = []
    agents = [start(slot, on_change=changes.append if slot == 0 else None) for slot in range(3)]
    for agent, view in zip(agents, _join(agents)):
        agent.completed(view.step)
    with pytest.raises(ElasticError, match="no worker of view 1 has shared 'here/0' after 0.1 s"):
        agents[1].fetch(1, "here/0", 0.1, 0)  # it is not required
    assert not agents[0].expelled and agents[0].view().epoch == 1
    with pytest.raises(ViewChanged):
        agents[1].fetch(1, "here/0", 0.1, 0, required=True)
    view = agents[1].await_view(1, PATIENCE)
    assert [member.slot for member in view.members] == [1, 2]
    assert [why for _, why in view.departed] == ["the other workers have waited 0.1 s for it"]
    with pytest.raises(Evicted, match="without this process: the other workers have waited 0.1 s"):
        agents[0].await_view(1, PATIENCE)
    assert changes
    for agent in agents[1:]:
        agent.await_view(1, PATIENCE)
        agent.completed(0)
    joining = threading.Thread(target=agents[0].join, args=[PATIENCE])
    joining.start()
    for step in range(1, 200):
        for agent in agents[1:]:
            agent.completed(step)
        time.sleep(0.01)
        if agents[0].view() is not None:
            break
    joining.join(PATIENCE)
    assert not agents[0].expelled and agents[0].view().epoch == 3


def test_who_has_no_state_asks_nobody_to_leave(start: Start) -> None:
    agents = [start(slot) for slot in range(3)]
    _join(agents)
    agents[0].completed(0)
    with pytest.raises(ElasticError, match="no worker of view 1 has shared 'here/0' after 0.1 s"):
        agents[1].fetch(1, "here/0", 0.1, 0, required=True)
    assert not agents[0].expelled and agents[0].view().epoch == 1


def test_too_few_are_left_without_one_that_hangs(start: Start) -> None:
    """Too few workers remain without one that hangs, until it joins again under another id."""
    agents = [start(slot, min_members=2, start_timeout=0.2) for slot in range(2)]
    for agent, view in zip(agents, _join(agents)):
        agent.completed(view.step)
    with pytest.raises(ViewChanged):
        agents[0].fetch(1, "here/1", 0.1, 1, required=True)
    wait_until(lambda: "2 members" in agents[0].status()["waits_for"], PATIENCE, "it to wait")
    with pytest.raises(ElasticError, match="it waits for 2 members or more: there are 1"):
        agents[0].await_view(1, 0.5)
    assert "waited" in agents[1].expelled and "waited" in agents[1].ended(1)
    with pytest.raises(Evicted, match="the other workers have waited 0.1 s for it"):
        agents[1].await_view(1, PATIENCE)
    assert len(agents[1].join(PATIENCE).members) == 2
    assert len(agents[0].await_view(1, PATIENCE).members) == 2


def test_leaving_in_peace(start: Start) -> None:
    agents = [start(slot) for slot in range(3)]
    _join(agents)
    agents[1].leave()
    agents[1].close()
    view = agents[0].await_view(1, PATIENCE)
    assert [member.slot for member in view.members] == [0, 2]
    assert [why for _, why in view.departed] == ["it left"]


def test_leaving_at_a_boundary(start: Start) -> None:
    agents = [start(slot) for slot in range(3)]
    _join(agents)
    for agent in agents:
        agent.completed(4)
    view = agents[0].leave(at_boundary=True, timeout=PATIENCE)
    assert view is not None and view.boundary == 6 and agents[0].id not in view.ids
    for step in (5, 6):
        for agent in agents:
            agent.completed(step)
    assert [agent.await_view(1, PATIENCE) for agent in agents[1:]] == [view, view]


def test_too_few_members_wait_and_say_so(start: Start) -> None:
    agents = [start(slot, min_members=2) for slot in range(2)]
    agents.append(start(2, min_members=2))
    _join(agents)
    for agent in agents[1:]:
        agent.leave()
        agent.close()
    epoch = 1
    with pytest.raises(ElasticError, match="it waits for 2 members or more: there are 1"):
        while True:  # there may be a view between the two ends
            epoch = agents[0].await_view(epoch, 1.5).epoch
    late = start(1, restart=1, min_members=2)
    assert len(late.join(PATIENCE).members) == 2
    assert len(agents[0].await_view(epoch, PATIENCE).members) == 2


@pytest.fixture
def on_separate_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no agent see the processes of other agents, as if each ran on a separate host."""
    monkeypatch.setattr("hipress.elastic.membership.evidence.has_ended", lambda *of: False)
    monkeypatch.setattr("hipress.elastic.membership.evidence.is_of_this_host", lambda *of: False)
    monkeypatch.setattr("hipress.elastic.membership.evidence.is_vacant", lambda host, port: False)


@pytest.mark.usefixtures("on_separate_hosts")
def test_refusals_of_other_hosts_prove_no_death_but_supervisors_do(
    start: Start, tmp_path: Path
) -> None:
    ended = tmp_path / "ended"
    agents = [start(slot, ended_file=str(ended)) for slot in range(3)]
    _join(agents)
    agents[0].close()
    agents[1].close()
    epoch = 1
    with pytest.raises(ElasticError, match="a majority of view [12]'s workers, or proof that"):
        while True:  # a view may be installed between the two deaths
            epoch = agents[2].await_view(epoch, 1.0).epoch
    assert 1 in {each["slot"] for each in agents[2].status()["suspects"]}
    ended.write_text(ENDED)
    view = agents[2].await_view(epoch, PATIENCE)
    assert [member.slot for member in view.members] == [2]
    assert {why for _, why in view.departed} == {"its process has ended"}


ENDED = json.dumps({slot: [None, *evidence.host()] for slot in "01"})


class Tunnel:
    """A tunnel between two sites, whose gateways refuse connections while it is down."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, sites: Sequence[set[int]]) -> None:
        self.down, self._sites = False, sites
        self._links: list[Link] = []
        opens, tunnel = Link._open, self

        async def through(link: Link) -> Any:
            if tunnel.down and tunnel._crosses(link):
                raise ConnectionRefusedError
            tunnel._links.append(link)
            return await opens(link)

        monkeypatch.setattr(Link, "_open", through)

    def _crosses(self, link: Link) -> bool:
        return not any({link._slot, link._owner.me.slot} <= site for site in self._sites)

    def close(self) -> None:
        """Take the tunnel down, and end the connections through it."""
        self.down = True
        for link in filter(self._crosses, self._links):
            if link.writer is not None:
                loop = link._owner._loop  # type: ignore[attr-defined]
                loop.call_soon_threadsafe(link.writer.transport.abort)


@pytest.mark.slow
@pytest.mark.usefixtures("on_separate_hosts")
def test_only_one_site_goes_on_when_gateways_refuse_connections(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tunnel = Tunnel(monkeypatch, [{0, 1}, {2, 3}])
    ports = [("127.0.0.1", port) for port in _free_ports(4)]
    with contextlib.ExitStack() as stack:
        agents = [
            stack.enter_context(Agent(ports, slot, SECRET, 1, heartbeat_timeout=HEARTBEAT))
            for slot in range(4)
        ]
        for agent, view in zip(agents, _join(agents)):
            agent.completed(view.step)
        tunnel.close()
        for agent in agents[:2]:
            view = agent.await_view(1, PATIENCE)
            assert [member.slot for member in view.members] == [0, 1]
        for agent in agents[2:]:
            with pytest.raises(ElasticError, match="there is no view after view 1 after"):
                agent.await_view(1, HEARTBEAT)
            assert agent.status()["dead"] == []
        tunnel.down = False
        for agent in agents[2:]:
            with pytest.raises(Evicted):
                agent.await_view(1, PATIENCE)


@pytest.mark.usefixtures("on_separate_hosts")
def test_majority_leaves_out_a_member_at_once_when_its_address_refuses(start: Start) -> None:
    agents = [start(slot, heartbeat_timeout=60.0) for slot in range(3)]
    _join(agents)
    agents[0].close()
    view = agents[1].await_view(1, QUICK)
    assert [member.slot for member in view.members] == [1, 2]
    assert [why for _, why in view.departed] == ["its address refuses connections"]


def test_process_not_seen_running_here_has_not_ended_and_leaves_no_vacancy(start: Start) -> None:
    """A process that was not seen running here has not ended, and leaves no vacancy: its host is a
    clone of this one, or a gateway of this host leads to it."""
    thread = start(0)._thread
    own = thread.me.process
    dialed = thread._links.values()
    wait_until(lambda: all(link.tried for link in dialed), 10, "all slots were dialed")
    elsewhere = Member("elsewhere", 1, "127.0.0.1", 1, process=replace(own, start=own.start - 1))
    here = Member("here", 2, "127.0.0.1", 1, process=own)
    with thread.changed:
        for member in (elsewhere, here):
            thread.machine.meet(member)
            thread._heard(member, time.monotonic())
    assert not thread._has_ended(elsewhere) and not thread._is_vacant(1)
    assert not thread._has_ended(here) and thread._is_vacant(2)
    gone = replace(here, process=replace(own, pid=(1 << 22) + 1))
    thread._seen_running.add(gone.process)
    assert thread._has_ended(gone)


def test_slot_with_a_substituted_address_is_not_vacant(start: Start) -> None:
    """A slot with a substituted address is not vacant: its name means loopback here, but the slot's
    own host may have another address."""
    thread = start(0)._thread
    dialed = thread._links.values()
    wait_until(lambda: all(link.tried for link in dialed), 10, "all slots were dialed")
    assert thread._is_vacant(1)
    thread.other_address = "127.0.0.1"
    wait_until(lambda: all(link.substituted for link in dialed), 10, "they were dialed again")
    assert not thread._is_vacant(1)


def test_ended_file_is_read_again_after_an_error(
    start: Start, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    ended = tmp_path / "ended"
    ended.mkdir()
    thread = start(0)._thread
    thread._ended_file = str(ended)
    wait_until(lambda: "HIPRESS_ELASTIC_ENDED" in caplog.text, 10, "the error is reported")
    ended.rmdir()
    ended.write_text('{"1": [null, "boot", "pid"]}')
    wait_until(lambda: 1 in thread.machine.ended_reports, 10, "the file is read")
    assert [each.levelname for each in caplog.records if "ENDED" in each.message] == ["WARNING"]


def test_slot_with_an_invalid_host_name_does_not_end_the_agent() -> None:
    port = free_port()
    with Agent([("127.0.0.1", port), ("a..b", 9)], 0, SECRET, 1, tls_mode="off") as agent:
        time.sleep(0.3)
        assert agent._thread.error is None
    with pytest.raises(ElasticError, match="slot 1's agent cannot listen on a..b:9"):
        Agent([("127.0.0.1", port), ("a..b", 9)], 1, SECRET, 1, tls_mode="off")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"0": [-1, "boot", "pid"]}',
        '{"a": [1, "boot", "pid"]}',
        '{"0": ["1", "boot", "pid"]}',
        '{"0": [1, "", "pid"]}',
        '{"0": [1, "boot"]}',
        '{"0": 1}',
    ],
)
def test_damaged_reports_of_a_supervisor_are_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_ended(text)


def _reads(path: Path) -> dict[int, Any]:
    """Return what an agent takes from the file of its supervisor."""
    agent: Any = SimpleNamespace(_ended_file=str(path), _ended_text="", _ended_level=30)
    return AgentThread._read_ended(agent)


def test_reports_of_a_supervisor_that_nest_too_deeply_are_refused(tmp_path: Path) -> None:
    (tmp_path / "ended").write_text("[" * 100_000)
    assert _reads(tmp_path / "ended") == {}


def test_reports_that_another_user_may_have_written_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "ended"
    path.write_text(ENDED)
    assert _reads(path)
    tmp_path.chmod(0o777)
    assert not _reads(path)


def test_a_missing_slot_is_named(start: Start) -> None:
    agents = [start(0, start_timeout=60), start(2, start_timeout=60)]
    with pytest.raises(ElasticError, match="it waits for the first processes of slot 1, 2"):
        agents[0].join(1.0)


def test_strangers_and_garbage_harm_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "hipress.elastic")
    agents = [start(slot) for slot in (0, 1)]
    wrong = start(2, secret=b"another secret of 16")
    port = start.ports[0]  # type: ignore[attr-defined]
    hello = MAGIC + bytes(HELLO_BYTES - len(MAGIC))
    wants_tls = MAGIC + b"\1" + bytes(HELLO_BYTES - len(MAGIC) - 1)
    garbage = b"GET / HTTP/1.0\r\n\r\n" + bytes(100)
    for data in (garbage, hello + bytes(36), wants_tls, b"", bytes(9)):
        with socket.create_connection(("127.0.0.1", port), 5) as stranger:
            stranger.sendall(data)
    huge = hello + b"\xff\xff\xff\xff" + bytes(32)
    with socket.create_connection(("127.0.0.1", port), 5) as stranger:
        stranger.sendall(huge)
        stranger.settimeout(5)
        assert len(stranger.recv(100)) == HELLO_BYTES
        assert stranger.recv(100) == b""  # it is closed, and receives nothing more
    with pytest.raises(ElasticError, match="this process is no member after 1 s"):
        wrong.join(1)
    wrong.close()
    newcomer = start(2)
    assert len(_join([*agents, newcomer])[0].members) == 3
    text = caplog.text
    for part in ("does not speak this", "could not prove", "4294967295 bytes", "wants TLS"):
        assert part in text, text


@pytest.mark.parametrize("slot", [0, 5, -1])
def test_process_of_a_slot_that_the_job_lacks_is_refused(start: Start, slot: int) -> None:
    """An example is a process that is left from before the job was made smaller."""
    start(0)
    port = start.ports[0]  # type: ignore[attr-defined]

    async def dial() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            made = await channel.dial(reader, writer, SECRET, "auto")
            stale = Member("stale", slot, "127.0.0.1", port)
            made.send(messages.dumps([messages.member_to_plain(stale), 0]))
            with pytest.raises(EOFError):
                await asyncio.wait_for(made.receive(), 10)
        finally:
            writer.close()

    asyncio.run(dial())


def test_idle_strangers_do_not_keep_a_newcomer_out(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Idle strangers do not keep a newcomer out. There are more strangers than a listener keeps,
    and they stay longer than this test."""
    monkeypatch.setattr(links, "HANDSHAKE_SECONDS", 60.0)
    monkeypatch.setattr(links, "UNPROVEN_CONNECTIONS", 8)
    first = start(0)
    port = start.ports[0]  # type: ignore[attr-defined]
    with contextlib.ExitStack() as stack:
        for _ in range(24):
            stack.enter_context(socket.create_connection(("127.0.0.1", port), 5))
        time.sleep(0.2)  # until all are accepted
        assert len(_join([first, start(1), start(2)])[0].members) == 3


class _Pipe:
    """Writer that keeps its bytes."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def _received(data: bytes, hellos: bytes = b"n" * 32, dials: bool = False) -> list[bytes]:
    """Return what a channel makes of the bytes until they end."""

    async def read() -> list[bytes]:
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        channel = Channel(reader, _Pipe(), SECRET, hellos, dials)  # type: ignore[arg-type]
        payloads = []
        with contextlib.suppress(EOFError):
            while True:
                payloads.append(await channel.receive())
        return payloads

    return asyncio.run(read())


def test_frames_cannot_be_changed_repeated_left_out_or_moved() -> None:
    frames = []
    pipe = _Pipe()
    sender = Channel(None, pipe, SECRET, b"n" * 32, True)  # type: ignore[arg-type]
    for payload in (b"", b"second", b"third"):  # the first frame is empty
        pipe.data = b""
        sender.send(payload)
        frames.append(pipe.data)
    first, second, third = frames
    assert _received(first + second + third) == [b"", b"second", b"third"]
    changed = second[:-1] + b"x"
    for data in (first[:-1] + b"x", first + changed, first + first, first + second * 2):
        with pytest.raises(Stranger, match="could not prove"):
            _received(data)
    with pytest.raises(Stranger, match="could not prove"):
        _received(first + third)
    with pytest.raises(Stranger, match="6 bytes where at most 0"):
        _received(second)
    with pytest.raises(Stranger):
        _received(first, hellos=b"m" * 32)  # another connection
    with pytest.raises(Stranger):
        _received(first, dials=True)  # back to its sender


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("HIPRESS_ELASTIC_AGENTS", None, "HIPRESS_ELASTIC_AGENTS is not set"),
        ("HIPRESS_ELASTIC_AGENTS", "a:1,b", "'b', where each slot's agent address belongs"),
        ("HIPRESS_ELASTIC_AGENTS", "a:1,a:1", "one address twice"),
        ("HIPRESS_ELASTIC_AGENTS", "::1:1", "'::1:1', where each slot's agent address belongs"),
        ("HIPRESS_ELASTIC_AGENTS", "[fe80::1%lo]:1", "fe80::1%lo is a link-local IPv6 address"),
        ("HIPRESS_ELASTIC_SLOT", "2", "HIPRESS_ELASTIC_SLOT is '2'; it takes a number from 0 to 1"),
        ("HIPRESS_ELASTIC_SLOT", None, "HIPRESS_ELASTIC_SLOT is not set"),
        ("HIPRESS_ELASTIC_MIN_WORKERS", "3", "it takes a number from 1 to 2"),
        ("HIPRESS_ELASTIC_RESTART", "-1", "HIPRESS_ELASTIC_RESTART is '-1'"),
        ("HIPRESS_TLS", "yes", "HIPRESS_TLS is 'yes', but must be auto, on or off"),
        ("HIPRESS_SECRET", "short", "has 5 characters"),
        ("HIPRESS_SECRET", None, "HIPRESS_SECRET is not set"),
    ],
)
def test_a_wrong_environment_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str | None, says: str
) -> None:
    right = {
        "HIPRESS_ELASTIC_AGENTS": "127.0.0.1:1,127.0.0.1:2",
        "HIPRESS_ELASTIC_SLOT": "0",
        "HIPRESS_ELASTIC_MIN_WORKERS": "1",
        "HIPRESS_ELASTIC_RESTART": "0",
        "HIPRESS_SECRET": SECRET.decode(),
    }
    for each, text in {**right, name: value}.items():
        if text is None:
            monkeypatch.delenv(each, raising=False)
        else:
            monkeypatch.setenv(each, text)
    with pytest.raises(ElasticError, match=says):
        Agent.from_environment()


def test_an_address_that_is_taken(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hipress.elastic.membership.agent_thread.START_SECONDS", 0.2)
    start(0)
    with pytest.raises(ElasticError, match="slot 0's agent cannot listen on 127.0.0.1:"):
        start(0)


def test_status_does_not_show_the_secret(start: Start) -> None:
    agents = [start(slot) for slot in range(3)]
    _join(agents)
    assert SECRET.decode() not in json.dumps(agents[0].status())


def test_evicted_is_an_elastic_error() -> None:
    assert issubclass(Evicted, ElasticError) and issubclass(ViewChanged, ElasticError)


def test_who_joins_a_job_that_is_over_is_told() -> None:
    agents = [("127.0.0.1", port) for port in _free_ports(3)]
    with contextlib.ExitStack() as stack:
        late = [
            stack.enter_context(Agent(agents, slot, SECRET, 1, restart=1, start_timeout=0.5))
            for slot in (1, 2)  # both have been restarted, and slot 0 is not there
        ]
        with ThreadPoolExecutor() as pool:
            for each in [pool.submit(agent.join, 20) for agent in late]:
                with pytest.raises(ElasticError, match="no other worker is left to join"):
                    each.result()
