"""Elastic jobs whose steps are outer steps of H inner steps: faults in their workers, and checks of
their journals, for all frameworks."""

import os
import signal
import time
from pathlib import Path


def inject(fault, state):
    """Inject a fault when this worker first synchronizes in outer step n, counted from 1.

    Args:
        fault: ("die", n): when all other workers send; ("wait", n): it sends when a death is known;
            ("refuse", n): it cannot begin; ("fail", n): it fails when the result is there; ("lack",
            n): likewise, when the other workers have taken theirs; ("late", n): it comes to take
            the result when another one has given the view up; ("miss", n): it learns of a failure
            before it knows whether all have come to the end; ("leave", n): it leaves the view when
            slot 0 is in the next outer step; the program handles anything else itself.
    """
    from hipress.elastic.membership.membership_errors import ViewChanged
    from hipress.elastic.training.adapter import ViewMembers
    from hipress.elastic.training.session import Session
    from hipress.errors import HipressError

    rounds = state.outer_steps
    outer = rounds.outer
    synchronize, start, count = rounds.start, outer.start, rounds.count_inner_step
    use, compare, exchange = outer.apply, Session._compare, ViewMembers.exchange
    tried = set()

    def is_due(*kinds):
        """Return whether a fault of these kinds is to happen now, for the first time."""
        found = fault in [(kind, rounds.completed + 1) for kind in kinds] and fault not in tried
        tried.update([fault] * found)
        return found

    def synchronizing(compression, *more, **options):
        if is_due("wait"):
            while not compression.engine.failure():
                time.sleep(0.02)
        if is_due("die"):
            time.sleep(0.5)
            os.kill(os.getpid(), signal.SIGKILL)
        synchronize(compression, *more, **options)

    def starting(fragment):
        if is_due("refuse"):
            raise HipressError("a test")
        start(fragment)

    def counting():
        count()
        if rounds.due == state.step and is_due("late"):
            session = state.session
            _wait_until(lambda: session._agent.ended(session.view.epoch))

    def using(*args, **more):
        if is_due("lack"):
            mine = int(os.environ["HIPRESS_ELASTIC_SLOT"])
            number = rounds.completed + 1
            _wait_until(lambda: min(_written("round", but=mine).values()) >= number)
            raise HipressError("a test")
        if is_due("fail"):
            raise HipressError("a test")
        return use(*args, **more)

    def exchanging(self, what, value="", *more):
        if what == "left" and is_due("miss"):
            self.share(f"{what}/{self.rank}", value)
            _wait_until(lambda: self.agent.ended(self.view.epoch))
            raise ViewChanged("a test")
        return exchange(self, what, value, *more)

    def leaving(self, digest):
        compare(self, digest)
        if fault == ("leave", state.completed):
            _wait_until(lambda: _written("step")[0] > state.step)
            raise HipressError("a test")

    rounds.start, rounds.count_inner_step = synchronizing, counting
    outer.start, outer.apply = starting, using
    Session._compare, ViewMembers.exchange = leaving, exchanging


def _wait_until(condition):
    while not condition():
        time.sleep(0.02)


def _written(kind, but=None):
    """Return how many events of a kind each slot's journal has, for all slots but one."""
    paths = Path(os.environ["HIPRESS_ELASTIC_LOG"]).glob("worker-*.jsonl")
    found = {int(path.stem[len("worker-") :]): path.read_text() for path in paths}
    return {slot: text.count(f'"event": "{kind}"') for slot, text in found.items() if slot != but}


def events(job, kind, slots=range(4)):
    return [{**e, "slot": s} for s in slots for e in job.journal(s) if e["event"] == kind]


def end(job, slots):
    """Wait for the workers' end; check all weights, and that each made every inner step once."""
    job.wait(90)
    for slot in slots:
        assert job.processes[job.present(slot)].returncode == 0, job.report()
    steps_are_made_once(job)
    return weights_are_equal(job)


def steps_are_made_once(job):
    """Check that no process repeats an inner step."""
    steps = {}
    for event in events(job, "step"):
        steps.setdefault(event["pid"], []).append(event["step"])
    for mine in steps.values():
        assert all(after > before for before, after in zip(mine, mine[1:])), mine


def weights_are_equal(job):
    """Return the digest after each outer step; check that it is the same on all workers."""
    digests = {}
    for event in events(job, "round"):
        digests.setdefault(event["round"], set()).add(event["digest"])
    assert sorted(digests) == list(range(1, len(digests) + 1))
    assert all(len(found) == 1 for found in digests.values()), digests
    return [digests[number].pop() for number in sorted(digests)]


def contributions(job):
    """Return (slot, process) of those that trained in each outer step, by rank."""
    by_round = {}
    for event in events(job, "round"):
        by_round.setdefault(event["round"], []).append(event)
    found = [sorted(by_round[number], key=lambda e: e["rank"]) for number in sorted(by_round)]
    for each in found[:-1]:  # of the last one some may have no result yet
        assert all(event["trained"] == len(each) for event in each), each
    return [[(event["slot"], event["pid"]) for event in each] for each in found]


def silence(job, slot, workers):
    """Stop a worker for an outer step of the remaining ones; it joins again afterwards.

    Args:
        workers: The remaining workers.
    """
    from harness.processes import wait_until  # late: workers import this module without it

    job.kill(slot, signal.SIGSTOP)
    wait_until(lambda: events(job, "round", [0])[-1]["trained"] == workers, 120, "others to go on")
    job.kill(slot, signal.SIGCONT)
    job.wait_for(job.present(slot), "joins again")
    wait_until(lambda: events(job, "round", [slot])[-1]["trained"] == workers + 1, 120, "all")


def stop(job):
    for name in job.running():
        job.signal(name, signal.SIGKILL)
        job.processes[name].wait()
