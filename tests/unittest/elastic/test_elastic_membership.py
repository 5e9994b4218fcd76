"""The membership protocol: random schedules, and the purpose of its rules."""

from __future__ import annotations

import contextlib
import json

import pytest
from msgspec.structs import replace

from hipress.elastic.membership import messages, proposer
from hipress.elastic.membership.detector import Detector
from hipress.elastic.membership.protocol import Membership, new_member
from hipress.elastic.membership.status import waits_for
from hipress.elastic.membership.view import (
    NEVER_AGAIN,
    NO_PROCESS,
    Ended,
    Member,
    Process,
    View,
    slot_name,
    uncounted,
)
from tests.simulation import membership as simulation
from tests.simulation.world import Disagreement, Violation, World

SCHEDULES = 500
ADDRESSES = [("10.0.0.1", 1000 + slot) for slot in range(4)]
TABLE = ("boot", "pid:[1]")  # where processes are unique
MEMBERS = tuple(
    Member(f"id{slot}", slot, *ADDRESSES[slot], process=Process(*TABLE, slot + 1, 1))
    for slot in range(4)
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("uncounted", "refusals", "most_over"),
    [  # in all other schedules, training reached its end
        (False, False, SCHEDULES / 3),
        (True, False, SCHEDULES / 50),
        (False, True, SCHEDULES / 3),
    ],
    ids=["restarts are counted", "nobody counts restarts", "gateways refuse connections"],
)
def test_random_schedules(uncounted: bool, refusals: bool, most_over: float) -> None:
    """No random schedule of faults gives two lineages, or a view without a majority or evidence.

    Cost: Some hundred simulated jobs run one after the other.
    """
    over = 0
    for seed in range(SCHEDULES):
        try:
            over += simulation.run(seed, uncounted=uncounted, refusals=refusals).over
        except Exception as error:
            raise AssertionError(
                f"python -m tests.simulation.membership --seed {seed}"
                f"{' --uncounted' * uncounted}{' --refusals' * refusals} replays it: {error}"
            ) from error
    assert over < most_over


def test_a_seed_replays_its_schedule() -> None:
    logs: list[list[str]] = [[], []]
    outcomes = [simulation.run(7, log) for log in logs]
    assert outcomes[0] == outcomes[1] and logs[0] == logs[1] and len(logs[0]) > 10


@pytest.mark.parametrize(
    "weak",
    [
        lambda view, voters: len(voters) > 0,
        lambda view, voters: 2 * len(set(view.ids) & set(voters)) >= len(view.members),
    ],
    ids=["one member is enough", "any half is enough"],
)
def test_a_weak_quorum_is_found(monkeypatch: pytest.MonkeyPatch, weak) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(proposer, "is_majority", weak)
    with pytest.raises(Violation):
        for seed in range(200):
            simulation.run(seed)


def test_simulation_finds_two_views_when_refusals_are_proof(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(World, "is_proof", lambda world, slot, other, lives: True)
    monkeypatch.setattr(World, "checks_deaths", False)  # which would find it first
    with pytest.raises(Violation, match="two views|do not meet"):
        for seed in range(200):
            with contextlib.suppress(Disagreement):
                simulation.run(seed, refusals=True)


def test_half_of_the_members_need_rank_0() -> None:
    view = View(1, MEMBERS)
    assert proposer.quorum_of(view, {"id0", "id3"}, ()) == proposer.MAJORITY
    assert proposer.quorum_of(view, {"id1", "id2"}, ()) is None
    assert proposer.quorum_of(view, {"id1", "id2"}, {"id0"}) is None  # id3 may have decided with it
    assert proposer.quorum_of(view, {"id1", "id2"}, {"id0", "id3"}) == proposer.ALL_ALIVE
    assert proposer.quorum_of(view, {"id1", "id2", "id3"}, ()) == proposer.MAJORITY


def _member_of_three() -> Membership:
    """Return slot 2's process, in a view of slots 0, 1 and 2; slot 3 is free."""
    machine = Membership(MEMBERS[2], ADDRESSES, 1, 0.0)
    view = View(1, MEMBERS[:3], 5, "id0")
    machine.step, machine.clean = 5, True
    machine.receive(0.0, MEMBERS[0], messages.Install(view))
    machine.enter(0.0, 1)
    machine.outputs.clear()
    return machine


def _installed(machine: Membership) -> list[View]:
    return [each.view for each in machine.outputs if isinstance(each, messages.Installed)]


def _collects(machine: Membership) -> dict[int, messages.Collect]:
    return {
        each.slot: each.message
        for each in machine.outputs
        if isinstance(each, messages.Send) and isinstance(each.message, messages.Collect)
    }


def test_who_survives_a_majority_asks_every_slot_before_it_goes_on() -> None:
    machine = _member_of_three()
    for dead in ("id0", "id1"):
        machine.suspect(1.0, dead, True, "it has ended")
    collect = _collects(machine)[3]
    assert set(collect.dead) == {"id0", "id1"}
    for slot in (0, 1):
        machine.refused(1.1, slot, None, False, True, [collect.ballot])
    assert not _installed(machine) and "[3]" in waits_for(machine)
    machine.refused(1.1, 3, None, False, True, [(1, "earlier question")])
    machine.refused(1.1, 3, None, False, False, [collect.ballot])  # maybe by a gateway
    assert not _installed(machine)
    machine.receive(1.2, MEMBERS[3], messages.Witness(1, collect.ballot))
    (view,) = _installed(machine)
    assert (view.epoch, view.ids, view.step, view.source) == (2, ("id2",), 5, "id2")
    assert [why for _, why in view.departed] == ["it has ended", "it has ended"]


def test_who_survives_a_majority_learns_that_a_joiner_knows_better() -> None:
    machine = _member_of_three()
    for dead in ("id0", "id1"):
        machine.suspect(1.0, dead, True, "it has ended")
    later = View(2, (MEMBERS[0], MEMBERS[1], MEMBERS[3]), 5, "id0", joined=("id3",))
    machine.receive(1.1, MEMBERS[3], messages.Install(later))
    assert not _installed(machine) and machine.newest == later
    assert any(isinstance(each, messages.MemberEvicted) for each in machine.outputs)


def _member_of_four(slot: int) -> Membership:
    """Return the state of a process in a view of all four slots."""
    machine = Membership(MEMBERS[slot], ADDRESSES, 1, 0.0)
    machine.step, machine.clean = 5, True
    sender = MEMBERS[1 if slot == 0 else 0]
    machine.receive(0.0, sender, messages.Install(View(1, MEMBERS, 5, "id0")))
    machine.enter(0.0, 1)
    machine.outputs.clear()
    return machine


def _promise(machine: Membership, slot: int, **more: object) -> messages.Promise:
    """Return another slot's answer to the present ballot of ``machine``."""
    other = _member_of_four(slot)
    other.receive(1.0, machine.me, _latest_collect(machine), **more)  # type: ignore[arg-type]
    return _sent(other, messages.Promise)[-1]


def _latest_collect(machine: Membership) -> messages.Collect:
    return _sent(machine, messages.Collect)[-1]


def test_refused_connections_of_half_of_the_members_decide_nothing() -> None:
    machine = _member_of_four(2)
    for slot in (0, 1):
        machine.refused(1.0, slot, MEMBERS[slot], False, False)
    ballot = _latest_collect(machine).ballot
    for slot in (0, 1):
        machine.refused(1.0, slot, MEMBERS[slot], False, False, [ballot])
    machine.receive(1.1, MEMBERS[3], _promise(machine, 3))
    machine.tick(50.0)
    assert not machine.dead and not _installed(machine)
    assert set(machine.suspects) == {"id0", "id1"}
    assert "a majority" in waits_for(machine) and "proof" in waits_for(machine)


def test_rank_0_goes_on_with_half_of_the_members_at_once() -> None:
    machine = _member_of_four(0)
    for slot in (2, 3):
        machine.refused(1.0, slot, MEMBERS[slot], False, False)
    machine.receive(1.0, MEMBERS[1], _promise(machine, 1))
    accept = _sent(machine, messages.Accept)[-1]
    machine.receive(1.0, MEMBERS[1], messages.Accepted(1, accept.ballot))
    assert _installed(machine)[0].ids == ("id0", "id1")


def _below(slot: int, restart: int) -> int:
    return new_member(slot, ADDRESSES, "", restart).incarnation


def test_supervisors_evidence_lets_half_of_the_members_go_on() -> None:
    machine = _member_of_four(2)
    machine.ended(1.0, 0, Ended(NEVER_AGAIN, *TABLE))
    machine.ended(1.0, 1, Ended(_below(1, 1), *TABLE))
    machine.receive(1.1, MEMBERS[3], _promise(machine, 3))
    assert set(_latest_collect(machine).dead) == {"id0", "id1"}
    assert not _installed(machine) and "slots [1]" in waits_for(machine)  # it is restarted
    again = new_member(1, ADDRESSES, "again", 1)
    ballot = _latest_collect(machine).ballot
    machine.receive(1.2, again, messages.Witness(1, ballot))
    accept = _sent(machine, messages.Accept)[-1]
    machine.receive(1.2, MEMBERS[3], messages.Accepted(1, accept.ballot))
    assert _installed(machine)[0].ids == ("id2", "id3")
    machine.receive(1.3, MEMBERS[1], messages.Beat(5, False))  # sent before it ended
    assert machine.known[1] == again


@pytest.mark.parametrize(
    "table", [("other", "pid:[1]"), ("boot", "pid:[2]"), ("", "")], ids=["host", "container", "-"]
)
def test_end_of_a_client_is_no_evidence_about_its_container(table: tuple[str, str]) -> None:
    machine = _member_of_four(2)
    for slot in (0, 1):
        machine.ended(1.0, slot, Ended(NEVER_AGAIN, *table))
        machine.receive(1.1, MEMBERS[slot], messages.Beat(1, False))
    assert not machine.dead and not machine.without_process


def test_end_of_a_client_is_no_evidence_about_an_unknown_process() -> None:
    machine = Membership(MEMBERS[0], ADDRESSES, 1, 0.0)
    machine.ended(1.0, 1, Ended(NEVER_AGAIN, *TABLE))
    assert not machine.dead and not machine.without_process
    machine.receive(1.1, MEMBERS[1], messages.Beat(0, True))
    assert machine.without_process == {1} and set(machine.dead) == {"id1", slot_name(1)}


def test_evidence_of_another_host_comes_with_its_answer() -> None:
    machine = _member_of_four(2)
    machine.suspect(1.0, "id0", True, "its process has ended")
    machine.suspect(1.0, "id1", False, "its address refuses connections")
    other = _member_of_four(3)
    other.suspect(1.0, "id1", True, "its process has ended")
    machine.refused(1.0, 0, None, False, True, [_latest_collect(machine).ballot])
    for _ in range(2):  # the first answer contains the evidence, which starts a new ballot
        collect = _latest_collect(machine)
        machine.refused(1.0, 0, None, False, True, [collect.ballot])
        other.receive(1.0, machine.me, collect, frozenset({1}))
        machine.receive(1.1, MEMBERS[3], _sent(other, messages.Promise)[-1])
    accept = _sent(machine, messages.Accept)[-1]
    assert accept.view.ids == ("id2", "id3") and set(accept.dead) == {"id0", "id1"}


def test_process_that_has_answered_is_asked_again_for_evidence() -> None:
    machine = _member_of_four(2)
    for slot in (0, 1):
        machine.suspect(1.0, f"id{slot}", False, "silent")
    machine.receive(1.0, MEMBERS[3], _promise(machine, 3))
    machine.outputs.clear()
    machine.tick(2.0)
    assert 3 in _collects(machine)


def test_a_majority_does_not_wait_for_the_other_slots() -> None:
    machine = _member_of_three()
    machine.suspect(1.0, "id0", True, "it has ended")
    machine.receive(1.0, MEMBERS[1], messages.Beat(1, False))
    collect = messages.Collect(machine.newest, (1, "id1"), False, ("id0",))
    machine.receive(1.0, MEMBERS[1], collect)
    sent = [each.message for each in machine.outputs if isinstance(each, messages.Send)]
    promises = [each for each in sent if isinstance(each, messages.Promise)]
    assert promises and promises[-1].step == 5 and promises[-1].dead == ("id0",)


def test_what_the_dead_sent_counts_no_more() -> None:
    machine = _member_of_three()
    machine.suspect(1.0, "id0", True, "it has ended")
    machine.outputs.clear()
    machine.receive(1.1, MEMBERS[0], messages.Install(View(2, MEMBERS[:1], 5, "id0")))
    machine.receive(1.1, MEMBERS[0], messages.Collect(machine.newest, (9, "id0"), False, ()))
    assert machine.newest.epoch == 1
    assert not [
        each
        for each in machine.outputs
        if isinstance(each, messages.Send) and isinstance(each.message, messages.Promise)
    ]


def test_a_later_incarnation_is_proof_of_death() -> None:
    machine = _member_of_three()
    newcomer = Member("new", 0, *ADDRESSES[0], incarnation=1 << 16)
    machine.receive(1.0, newcomer, messages.Beat(0, True))
    assert "id0" in machine.dead
    machine.receive(1.1, MEMBERS[0], messages.Beat(1, False))  # late: it does not come back
    assert machine.known[0] == newcomer and "new" not in machine.dead


def test_a_restarted_process_has_no_vote_for_the_first_view() -> None:
    machine = Membership(new_member(0, ADDRESSES, "again", 1), ADDRESSES, 1, 0.0)
    machine.join(0.0)
    for member in MEMBERS[1:]:
        machine.receive(0.1, member, messages.Beat(0, True))
    machine.tick(100.0)
    assert not _collects(machine)
    collect = messages.Collect(machine.newest, (1, "id1"), False, ())
    machine.receive(100.0, MEMBERS[1], collect)
    answers = [each.message for each in machine.outputs if isinstance(each, messages.Send)]
    assert not any(isinstance(each, messages.Promise) for each in answers)


# No process counts restarts: founder.py.


def _uncounted(slot: int, second: float, name: str) -> Member:
    return _boot(slot, f"boot{slot}", int(100 * second) + 1, second, name)


def _boot(slot: int, boot: str, start: int, second: float, name: str) -> Member:
    """Return a process that its kernel started at tick ``start``, and its clock at ``second``."""
    process = Process(boot, "namespace", 100, start)
    return new_member(slot, ADDRESSES, name, uncounted(1e9 + second), process)


def test_worker_that_is_restarted_after_its_clock_was_set_back_is_let_in() -> None:
    machine = _joining(_uncounted(0, 1, "me"))
    before, after = _boot(1, "boot", 500, 20, "before"), _boot(1, "boot", 900, 10, "after")
    assert before.incarnation > after.incarnation
    machine.receive(0.1, before, messages.Beat(0, True))
    machine.receive(0.2, after, messages.Beat(0, True))
    assert "before" in machine.dead and machine.known[1] == after and "after" in machine.joins
    machine.receive(0.3, before, messages.Beat(0, True))  # a late message
    assert machine.known[1] == after and "after" not in machine.dead


def test_worker_on_a_host_that_was_started_again_is_let_in_once_it_answers() -> None:
    machine = _joining(_uncounted(0, 1, "me"))
    before, after = _boot(1, "first", 500, 20, "before"), _boot(1, "second", 90, 10, "after")
    machine.answers(0.1, before, frozenset())
    earlier = machine.in_doubt(1)
    machine.receive(0.2, after, messages.Beat(0, True))
    assert not {"before", "after"} & set(machine.dead)
    assert messages.Verify(1) in machine.outputs
    machine.outputs.clear()
    machine.answers(0.3, after, earlier)
    assert "after" not in machine.dead and machine.known[1] == after
    machine.receive(0.4, before, messages.Beat(0, True))
    assert machine.outputs.count(messages.Verify(1)) == 0 and "before" in machine.dead


PROCESS = Process("boot", "pid:[1] time:[1]", 100, 500)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (NO_PROCESS, NO_PROCESS),
        (PROCESS, NO_PROCESS),
        (PROCESS, replace(PROCESS, pid=101)),
        (PROCESS, replace(PROCESS, namespace="pid:[1] time:[2]", start=600)),
    ],
)
def test_time_of_day_never_orders_two_processes(one: Process, other: Process) -> None:
    before = new_member(1, ADDRESSES, "before", uncounted(1e9 + 20), one)
    after = new_member(1, ADDRESSES, "after", uncounted(1e9 + 10), other)
    assert before.follows(after) is None and after.follows(before) is None
    machine = _joining(_uncounted(0, 1, "me"))
    machine.answers(0.1, before, frozenset())
    machine.receive(0.2, after, messages.Beat(0, True))
    assert not {"before", "after"} & set(machine.dead)
    machine.answers(0.3, after, machine.in_doubt(1))
    assert "before" in machine.dead and machine.known[1] == after


def test_messages_of_a_process_in_doubt_ask_for_one_connection_only() -> None:
    machine = _joining(_uncounted(0, 1, "me"))
    before, after = _boot(1, "first", 500, 20, "before"), _boot(1, "second", 90, 10, "after")
    machine.answers(0.1, before, frozenset())
    for beat in range(3):
        machine.receive(0.2 + beat, after, messages.Beat(0, True))
    assert machine.outputs.count(messages.Verify(1)) == 1
    machine.answers(4.0, before, frozenset({"before"}))  # dialed before the doubt
    assert machine.outputs.count(messages.Verify(1)) == 2


def test_process_that_joins_again_follows_itself() -> None:
    first = new_member(1, ADDRESSES, "first", uncounted(1e9), PROCESS)
    again = replace(first, id="again", incarnation=first.incarnation + 1)
    assert again.follows(first) is True and first.follows(again) is False
    unknown = replace(first, process=NO_PROCESS)
    assert unknown.follows(unknown) is False


def test_process_that_answers_before_a_doubt_is_asked_for_again() -> None:
    machine = _joining(_uncounted(0, 1, "me"))
    first, second = _boot(1, "first", 500, 20, "first"), _boot(1, "second", 90, 10, "second")
    machine.answers(0.1, first, frozenset())
    machine.receive(0.2, second, messages.Beat(0, True))
    machine.outputs.clear()
    machine.answers(0.3, first, frozenset({"first"}))  # dialed before the second process was known
    assert not {"first", "second"} & set(machine.dead)
    assert messages.Verify(1) in machine.outputs
    machine.answers(0.4, first, machine.in_doubt(1))
    assert "second" in machine.dead and "first" not in machine.dead
    assert machine.known[1] == first


OTHERS = [_uncounted(slot, 1, f"other{slot}") for slot in (1, 2, 3)]


def _joining(member: Member) -> Membership:
    machine = Membership(member, ADDRESSES, 1, 0.0)
    machine.join(0.0)
    return machine


def _sent(machine: Membership, kind: type) -> list:
    found = [each.message for each in machine.outputs if isinstance(each, messages.Send)]
    return [message for message in found if isinstance(message, kind)]


def test_slot_0_needs_the_consent_of_all_that_are_there_now() -> None:
    founder = _joining(_uncounted(0, 1, "founder"))
    for other in OTHERS[:2]:
        founder.receive(0.1, other, messages.Beat(0, True))
    assert not _sent(founder, messages.Found) and "slot 3" in waits_for(founder)
    founder.receive(0.1, OTHERS[2], messages.Beat(0, True))
    asked = _sent(founder, messages.Found)[-1]
    assert asked.members == (founder.me, *OTHERS)
    for other in OTHERS[:2]:
        founder.receive(0.2, other, messages.Consent(0, asked.ballot))
    late = _uncounted(3, 2, "late")
    founder.receive(0.2, late, messages.Beat(0, True))
    founder.receive(0.2, OTHERS[2], messages.Consent(0, asked.ballot))  # it is dead
    founder.receive(0.3, late, messages.Consent(0, asked.ballot))  # of an earlier question
    assert not _installed(founder)
    again = _sent(founder, messages.Found)[-1]
    assert again.members == (founder.me, *OTHERS[:2], late) and again.ballot != asked.ballot
    for other in (*OTHERS[:2], late):
        founder.receive(0.4, other, messages.Consent(0, again.ballot))
    (view,) = _installed(founder)
    assert (view.epoch, view.ids) == (1, ("founder", "other1", "other2", "late"))
    assert view.behind == view.ids[1:] and view.source == "founder"


def test_who_consents_ignores_every_earlier_process_of_every_slot() -> None:
    machine = _joining(OTHERS[0])
    earlier = [_uncounted(slot, 0, f"earlier{slot}") for slot in (0, 2)]
    now = (_uncounted(0, 1, "founder"), *OTHERS)
    machine.receive(0.1, now[0], messages.Found((1, "founder"), now))
    assert _sent(machine, messages.Consent) == [messages.Consent(0, (1, "founder"))]
    decided = View(1, (earlier[0], machine.me, earlier[1]), 0, "earlier0")
    for member in earlier:
        machine.receive(0.2, member, messages.Install(decided))
    assert not _installed(machine) and machine.newest.epoch == 0


def test_who_is_in_a_view_or_knows_a_living_member_does_not_consent() -> None:
    now = (_uncounted(0, 2, "founder"), *OTHERS)
    view = View(3, (_uncounted(0, 1, "before"), OTHERS[0], OTHERS[1]), 7, "before")
    member, joiner = _joining(OTHERS[0]), _joining(OTHERS[2])
    for machine in (member, joiner):
        machine.receive(0.1, view.members[0], messages.Install(view))
        machine.receive(0.2, now[0], messages.Found((1, "founder"), now))
        assert not _sent(machine, messages.Consent)
        assert _sent(machine, messages.Install)[-1].view == view
    # The view's members have all ended: another job begins, whose epochs are higher.
    joiner.suspect(0.3, "other1", True, "it has ended")
    joiner.suspect(0.3, "other2", True, "it has ended")
    later = [_uncounted(slot, 3, f"later{slot}") for slot in (1, 2)]
    joiner.receive(0.4, now[0], messages.Found((2, "founder"), (now[0], *later, joiner.me)))
    assert _sent(joiner, messages.Consent) == [messages.Consent(3, (2, "founder"))]


def test_a_job_that_begins_anew_has_higher_epochs() -> None:
    founder = _joining(_uncounted(0, 1, "founder"))
    for other in OTHERS:
        founder.receive(0.1, other, messages.Beat(0, True))
    asked = _sent(founder, messages.Found)[-1]
    for other, epoch in zip(OTHERS, (0, 6, 2)):
        founder.receive(0.2, other, messages.Consent(epoch, asked.ballot))
    assert _installed(founder)[0].epoch == 7


def test_counted_and_uncounted_processes_do_not_begin_together() -> None:
    founder = _joining(_uncounted(0, 1, "founder"))
    for other in (*OTHERS[:2], MEMBERS[3]):
        founder.receive(0.1, other, messages.Beat(0, True))
    founder.tick(100.0)
    assert not _sent(founder, messages.Found)


def test_nobody_passes_two_steps_beyond_a_promise_for_a_planned_view() -> None:
    machine = _member_of_three()
    machine.receive(1.0, MEMBERS[0], messages.Collect(machine.newest, (1, "id0"), True, ()))
    assert machine.gate == 7
    machine.receive(1.1, MEMBERS[0], messages.Abandon(1, (1, "id0")))
    assert machine.gate is None


def test_a_step_completed_after_the_promise_is_not_lost() -> None:
    machine = _member_of_three()
    machine.receive(1.0, MEMBERS[0], messages.Install(View(2, MEMBERS[1:3], 5, "id1")))
    assert not machine.trouble
    machine.completed(1.1, 6, True, 1)  # of the former epoch: it had been in transit
    assert "completed step 6, not 5" in machine.trouble


def test_an_old_epochs_failure_changes_nothing() -> None:
    machine = _member_of_three()
    machine.receive(1.0, MEMBERS[0], messages.Install(View(2, MEMBERS[:3], 5, "id0")))
    machine.request_change(1.1, "the engine failed", 1)
    assert not machine.trouble
    machine.request_change(1.1, "the engine failed", 2)
    assert machine.trouble == "rank 2: the engine failed"


def test_messages_survive_json() -> None:
    machine = _member_of_three()
    view = View(
        3, MEMBERS, 7, "id1", ("id2",), 9, ((Member("x", 1, "h", 2, 3), "it left"),), ("id3",)
    )
    promise = machine.own_promise((4, "id0"))
    for message in (
        messages.Install(view),
        messages.Collect(view, (4, "id0"), True, ("id9",)),
        messages.Accept(view, (4, "id0"), view, ()),
        promise,
        messages.Request(3, "it failed", MEMBERS[:1]),
    ):
        plain = json.loads(messages.dumps(messages.to_plain(message)))
        assert messages.from_plain(plain) == message


@pytest.mark.parametrize(
    "plain",
    [
        None,
        [],
        ["Beat"],
        ["Beat", 1, 1],
        ["Beat", True, True],
        ["Beat", 1, True, 2],
        ["Nothing", 1],
        [["Beat"], 1, True],
        ["Install", [1, []]],
        ["Install", [1, [], 0, "", [], None, [], []]],
        ["Collect", [1, [["a", 0, "h", 1, "x"]], 0, "", [], None, [], []], [1, "a"], True, []],
        ["Accepted", 1, [1, 2, 3]],
        ["Accepted", 1, {"a": 1}],
        # Fields with defaults are missing, as from another version.
        ["Witness", 1, [1, "a"]],
        ["Leaving", True],
        ["Install", [1, [["a", 1, "h", 2]]]],
        ["Found", [1, "a"], [["a", 1, "h", 2, 3]]],
    ],
)
def test_malformed_messages_are_refused(plain: object) -> None:
    with pytest.raises(messages.Malformed):
        messages.from_plain(plain)


@pytest.mark.parametrize("data", [b'"\xff"', b"{", b"", b"[" * 100_000])
def test_bytes_that_are_not_json_are_refused(data: bytes) -> None:
    with pytest.raises(messages.Malformed):
        messages.loads(data)


def test_slots_of_all_members_in_a_message_are_found() -> None:
    stale = Member("x", 5, "h", 2)
    view = View(3, MEMBERS, departed=((stale, "it left"),))
    assert messages.slots_of(messages.Install(view)) == {0, 1, 2, 3, 5}
    assert messages.slots_of(messages.Found((1, "id0"), (*MEMBERS, stale))) == {0, 1, 2, 3, 5}
    assert messages.slots_of(messages.Request(3, "", (stale,))) == {5}
    assert messages.slots_of(messages.Beat(1, True)) == set()


@pytest.mark.parametrize("pid", [-1, 1 << 31, 1 << 80, "1"])
def test_member_with_an_impossible_process_id_is_refused(pid: object) -> None:
    plain = ["id1", 1, "10.0.0.1", 1001, 0, ["boot", "namespace", pid, 500]]
    with pytest.raises(messages.Malformed):
        messages.member_from_plain(plain)


def test_a_process_that_was_stopped_holds_it_against_nobody() -> None:
    detector = Detector(1.0, 0.0)
    detector.watch("a", 0.0)
    assert detector.tick(0.4) == []
    assert detector.tick(50.0) == []  # the gap is its own
    assert detector.tick(50.4) == [] and detector.tick(50.8) == []
    assert [member_id for member_id, _ in detector.tick(51.2)] == ["a"]
    assert detector.tick(51.4) == []
    assert detector.heard("a", 51.5) and not detector.heard("a", 51.6)
