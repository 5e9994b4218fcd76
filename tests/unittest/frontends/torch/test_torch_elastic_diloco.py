"""DiLoCo in elastic jobs: workers that die or join cost the remaining ones no outer step."""

import copy
import os
import sys
from pathlib import Path

import pytest

from elastic_rounds import (
    contributions,
    end,
    events,
    silence,
    steps_are_made_once,
    stop,
    weights_are_equal,
)
from harness import ROOT
from harness.elastic import ElasticJob
from harness.processes import wait_until
from scripts import SCRIPTS

torch = pytest.importorskip("torch")

H = 5

PROGRAM = SCRIPTS / "torch_elastic_diloco.py"


def parts(seed=0):
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.Tanh(), torch.nn.Linear(32, 4))
    inner = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9)
    outer = torch.optim.SGD(model.parameters(), 0.7, momentum=0.9, nesterov=True)
    return model, inner, outer, torch.optim.lr_scheduler.StepLR(inner, 7, 0.9)


def batch_of(slot, step):
    generator = torch.Generator().manual_seed(1000 * slot + step)
    inputs = torch.randn(8, 16, generator=generator)
    return inputs, inputs[:, :4] * 2


class Alone:
    """Reference of an elastic job without compression, in one process. It is exact if 1, 2 or 4
    workers train in an outer step: 1/3 is not.

    Args:
        delay: Steps that are made until an outer step's result is taken.
        alpha: The share of a worker's local weights that stays then.
    """

    def __init__(self, delay=0, alpha=0.0):
        model, _, self._outer, _ = parts()
        self._weights = {n: torch.nn.Parameter(p.detach()) for n, p in model.named_parameters()}
        self._outer.param_groups[0]["params"] = list(self._weights.values())
        self._workers, self._first, self._delay, self._alpha = {}, None, delay, alpha
        self._ended = self._taken = 0  # after which steps

    def round(self, workers, steps=H, again=False):
        """Make an outer step; return the digest of the weights after it.

        Args:
            workers: (slot, process) of those that train, by rank.
            again: Whether it was synchronized when its result was due, as that failed.
        """
        from hipress.elastic.training.session import digest
        from hipress.torch.elastic.state import as_bytes

        first, begun = self._first, self._taken
        self._ended += steps
        self._taken = self._ended + self._delay
        sent = self._taken if again else self._ended
        total = [torch.zeros_like(weights) for weights in self._weights.values()]
        for slot, process in workers:
            if (slot, process) not in self._workers:
                model, inner, _, scheduler = parts()
                self._mix(model, 0.0)
                for mine, found in zip((inner, scheduler), first or ()):
                    mine.load_state_dict(copy.deepcopy(found))  # as it copies what rank 0 had
                self._workers[slot, process] = model, inner, scheduler
            worker = self._workers[slot, process]
            self._train(slot, *worker, begun, sent)
            for weights, mine, sum_ in zip(self._weights.values(), worker[0].parameters(), total):
                sum_ += weights.detach() - mine.detach()
            self._train(slot, *worker, sent, self._taken)
        for weights, sum_ in zip(self._weights.values(), total):
            weights.grad = sum_ / len(workers)
        self._outer.step()
        for worker in workers:  # an immediate synchronization has all that they have
            self._mix(self._workers[worker][0], 0.0 if again else self._alpha)
        self._first = copy.deepcopy([e.state_dict() for e in self._workers[workers[0]][1:]])
        once = list(self._weights.items())
        return digest(as_bytes(once if self._alpha else [*once, *once]))

    @torch.no_grad()
    def _mix(self, model, alpha):
        for parameter, weights in zip(model.parameters(), self._weights.values()):
            parameter.copy_(torch.lerp(weights, parameter, alpha) if alpha else weights)

    def _train(self, slot, model, inner, scheduler, begin, end):
        for step in range(begin, end):
            inputs, targets = batch_of(slot, step)
            inner.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            inner.step()
            scheduler.step()


@pytest.fixture
def job():
    """Start a job of the program above."""
    jobs = []

    def start(
        workers=4,
        steps=6 * H,
        compression="none",
        faults=None,
        load=None,
        save=None,
        more=None,
        **options,
    ):
        about = [compression, H, steps, faults or {}, load, save, more or {}]
        command = [sys.executable, str(PROGRAM), repr(about)]
        path = os.pathsep.join([str(Path(__file__).parents[2]), str(ROOT)])
        jobs.append(ElasticJob(command, workers, env={"PYTHONPATH": path}, **options))
        return jobs[-1]

    torch.set_num_threads(1)
    yield start
    for each in jobs:
        each.close()


def alone(workers, last=H):
    """Return the digests after outer steps that these workers make, of which the last may be
    shorter."""
    reference = Alone()
    return [
        reference.round(each, last if i == len(workers) - 1 else H)
        for i, each in enumerate(workers)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("when", [2 * H + 2, ("die", 3)], ids=["in a round", "as it synchronizes"])
def test_what_the_others_trained_is_all_that_counts(job, when):
    with job(4, 5 * H + 2, faults={1: when, 3: when}) as running:
        digests = end(running, (0, 2))
        workers = contributions(running)
        assert [[slot for slot, _ in each] for each in workers] == [[0, 1, 2, 3]] * 2 + [[0, 2]] * 4
        assert digests == alone(workers, last=2)
        for slot in (0, 2):
            assert [e["step"] for e in events(running, "step", [slot])] == list(range(1, 5 * H + 3))


@pytest.mark.slow
def test_residuals_are_those_of_before(job):
    """Residuals are those from before a failed outer step, whether or not workers had begun to send
    when one died."""
    early = {0: ("wait", 3), 1: 2 * H + 2, 2: ("wait", 3)}
    found = []
    for faults in (early, {1: ("die", 3)}):
        with job(3, compression="sparseloco", faults=faults) as running:
            found.append(end(running, (0, 2)))
    assert len(found[0]) == 6 and found[0] == found[1]


@pytest.mark.slow
def test_a_worker_that_lacks_the_result_copies_it_and_keeps_what_is_its_own(job):
    with job(4, faults={2: ("lack", 3)}) as running:
        digests = end(running, range(4))
        (copied,) = [e for e in events(running, "copied", [2]) if e["step"]]
        assert copied["step"] == 3 * H
    assert digests == alone([[(slot, 0) for slot in range(4)]] * 6)


@pytest.mark.slow
def test_who_is_not_there_for_a_round_has_no_part_in_it(job):
    """A worker that misses an outer step has no part in it: workers that have its result leave the
    view when others have begun the next one."""
    with job(4, faults=dict.fromkeys((1, 3), ("leave", 3))) as running:
        digests = end(running, range(4))
        (copied,) = [e for e in events(running, "copied", [1]) if e["step"]]
        assert copied["step"] == 4 * H
    # They continue with what they have copied, as new workers do.
    four, later = [(slot, 0) for slot in range(4)], [(0, 0), (1, 1), (2, 0), (3, 1)]
    assert digests == alone([four] * 3 + [[(0, 0), (2, 0)]] + [later] * 2)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("least", [1, 2], ids=["between rounds", "into a round that failed"])
def test_a_joiner_contributes_from_the_next_round_on(job, least):
    """A worker that joins contributes from the next outer step on, also if the other one waits for
    it.

    Cost: Processes import PyTorch, one of them twice, and make several outer steps.
    """
    with job(2, 1_000_000, faults={1: H + 3}, min_workers=least) as running:
        first = running.processes[running.present(1)]
        wait_until(lambda: first.poll() is not None, 120, "the worker's death")
        if least == 1:
            wait_until(lambda: events(running, "round", [0])[-1]["trained"] == 1, 120, "a round")
        running.restart(1)

        def rounds_of_successor():
            return [e for e in events(running, "round", [1]) if e["pid"] != first.pid]

        wait_until(lambda: len(rounds_of_successor()) > 3, 120, "rounds of both")
        stop(running)
        digests, workers = weights_are_equal(running)[:-1], contributions(running)[:-1]
        steps_are_made_once(running)
    sizes = [len(each) for each in workers]
    assert sizes[:2] == [2, 1] and sizes[-2:] == [2, 2]
    assert least == 1 or set(sizes[2:]) == {2}
    assert digests == alone(workers)


@pytest.mark.slow
def test_a_silent_worker_gives_its_steps_up_and_joins_again(job):
    with job(3, 1_000_000) as running:
        wait_until(lambda: running.step(0) > 2 * H, 120, "two rounds")
        silence(running, 2, 2)
        stop(running)
        weights_are_equal(running)
        contributions(running)


@pytest.mark.slow
def test_a_new_job_goes_on_from_a_checkpoint(job, tmp_path):
    path = str(tmp_path / "saved.pt")
    with job(2, 2 * H, save=path) as running:
        before = end(running, range(2))
    saved = torch.load(path, weights_only=True)
    assert saved["step"] == 2 * H and saved["rounds"]["completed"] == 2
    with job(2, 4 * H, load=path) as running:
        running.wait(90, succeed=True)
        found = {e["round"]: e["digest"] for e in events(running, "round")}
    # With the state of slot 0 on all: what both had done alone is another training's.
    reference = Alone()
    both = [[(0, 0), (1, 0)], [(0, 0), (1, 0)], [(0, 0), (1, 1)], [(0, 0), (1, 1)]]
    expected = [reference.round(each) for each in both]
    assert before == expected[:2] and found == {3: expected[2], 4: expected[3]}


@pytest.mark.slow
def test_one_with_other_settings_or_an_error_in_a_round_ends_alone(job):
    with job(2, 1_000_000, min_workers=1) as running:
        wait_until(lambda: running.step(0) > H, 120, "a round")
        running.kill(1)
        other = repr(["none", H + 1, 1_000_000, {}, None, None, {}])

        def last_line(command):
            running.processes[running.present(1)].wait(120)
            running.restart(1, command)
            process = running.processes[running.present(1)]
            wait_until(lambda: process.poll() is not None, 120, "its end")
            return running.output(running.present(1)).strip().splitlines()[-1]

        last = last_line([*running.command[:-1], other])
        assert "ValueError: this worker" in last and "differ in sync_every: '6' and '5'" in last
        assert "OSError: no disk" in last_line([*running.command, "broken"])
        rounds = len(events(running, "round", [0]))
        wait_until(lambda: len(events(running, "round", [0])) > rounds + 2, 120, "further rounds")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"outer_optimizer": "SGD"}, "outer_optimizer needs sync_every"),
        ({"sync_every": 5}, "sync_every needs outer_optimizer"),
        ({"sync_every": 0, "outer_optimizer": "SGD"}, "sync_every must be 1 or more, not 0"),
        ({"sync_every": 5, "outer_optimizer": "inner"}, "must be another one than the inner"),
        ({"sync_every": 5, "outer_optimizer": "SGD", "fragments": 4}, "leave fragments out"),
        (
            {"sync_every": 5, "outer_optimizer": "SGD", "backward_passes_per_step": 2},
            "backward_passes_per_step is for gradients that are averaged",
        ),
        ({"sync_every": 5, "outer_optimizer": "part"}, "lacks 2 of the model's parameters"),
        ({"fragment_sync_delay": 2}, "fragment_sync_delay needs sync_every"),
        (
            {"sync_every": 5, "outer_optimizer": "SGD", "fragment_sync_delay": 5},
            "fragment_sync_delay must be in [0, sync_every) = [0, 5), not 5",
        ),
        (
            {"sync_every": 5, "outer_optimizer": "SGD", "fragment_update_alpha": 1},
            "fragment_update_alpha must be in [0, 1), not 1",
        ),
        ({"topology": "auto"}, "topology 'auto' is for compress() and DistributedOptimizer"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given, sentence):
    import hipress.torch.elastic as elastic

    model, inner, outer, _ = parts()
    part = torch.optim.SGD(model[0].parameters(), 0.7)
    chosen = {"SGD": outer, "inner": inner, "part": part}
    if "outer_optimizer" in given:
        given = {**given, "outer_optimizer": chosen[given["outer_optimizer"]]}
    with pytest.raises(ValueError) as caught:
        elastic.State(model, inner, "sparseloco", **given)
    assert sentence in str(caught.value)
