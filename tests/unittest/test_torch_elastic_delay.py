"""DiLoCo in elastic jobs whose synchronisations travel while the next steps are made."""

import pytest

from elastic_rounds import contributions, end, events, silence, stop, weights_are_equal
from harness.processes import wait_until
from test_torch_elastic_diloco import H, batch_of, job, parts  # noqa: F401 (job is a fixture)

torch = pytest.importorskip("torch")

DELAY = 2


class Alone:
    """What a job without compression does, in one process, of 1, 2 or 4 workers."""

    def __init__(self, alpha):
        model, _, self._outer, _ = parts()
        self._weights = {n: torch.nn.Parameter(p.detach()) for n, p in model.named_parameters()}
        self._outer.param_groups[0]["params"] = list(self._weights.values())
        self._alpha, self._step, self._workers = alpha, 0, {}

    def round(self, slots, again=False):
        """Makes a round; returns the digest of the weights after it.

        :param slots: of the workers that have a part in it
        :param again: whether its synchronisation failed, and was made when its result was due
        """
        from hipress.elastic_training.session import digest
        from hipress.torch.elastic.transfer import as_bytes

        start = H * (self._step // H + 1)
        total = [torch.zeros_like(weights) for weights in self._weights.values()]
        for slot in slots:
            worker = self._workers.setdefault(slot, parts())
            self._train(slot, *worker, start + DELAY if again else start)
            for weights, mine, sum_ in zip(self._weights.values(), worker[0].parameters(), total):
                sum_ += weights.detach() - mine.detach()
            if not again:
                self._train(slot, *worker, start + DELAY, start)
        self._step = start + DELAY
        for weights, sum_ in zip(self._weights.values(), total):
            weights.grad = sum_ / len(slots)
        self._outer.step()
        with torch.no_grad():
            for slot in slots:
                for mine, outer in zip(self._workers[slot][0].parameters(), self._weights.values()):
                    # What is synchronised at once has all that workers have.
                    keep = self._alpha and not again
                    mine.copy_(torch.lerp(outer, mine, self._alpha) if keep else outer)
        once = list(self._weights.items())
        return digest(as_bytes(once if self._alpha else [*once, *once]))

    def _train(self, slot, model, inner, _outer, scheduler, end, begin=None):
        for step in range(self._step if begin is None else begin, end):
            inputs, targets = batch_of(slot, step)
            inner.zero_grad()
            torch.nn.functional.mse_loss(model(inputs), targets).backward()
            inner.step()
            scheduler.step()


def delayed(alpha=0.0):
    return {"fragment_sync_delay": DELAY, "fragment_update_alpha": alpha}


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_weights_are_those_of_one_process(job, alpha):  # noqa: F811
    with job(2, 5 * H + DELAY, more=delayed(alpha)) as running:
        digests = end(running, range(2))
        assert {e["step"] % H for e in events(running, "round")} == {DELAY}
    reference = Alone(alpha)
    assert digests[:5] == [reference.round(range(2)) for _ in range(5)]
    assert len(digests) == (6 if alpha else 5)  # what was trained on the way is left, or is not


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_a_death_while_the_others_train_on_costs_them_nothing(job, alpha):  # noqa: F811
    with job(4, 5 * H + DELAY, faults={1: ("die", 3), 3: ("die", 3)},
             more=delayed(alpha)) as running:  # fmt: skip
        digests = end(running, (0, 2))
        workers = [[slot for slot, _ in each] for each in contributions(running)]
        for slot in (0, 2):
            steps = [e["step"] for e in events(running, "step", [slot])]
            assert steps == list(range(1, 5 * H + DELAY + 1))
    assert workers[:5] == [[0, 1, 2, 3]] * 2 + [[0, 2]] * 3
    reference = Alone(alpha)
    expected = [reference.round(each, i == 2) for i, each in enumerate(workers[:5])]
    assert digests[:5] == expected


def test_workers_join_and_are_silent(job):  # noqa: F811
    with job(3, 1_000_000, compression="sparseloco", more=delayed(0.5)) as running:
        wait_until(lambda: running.step(0) > 2 * H, 60, "two rounds")
        silence(running, 2, 2)
        running.kill(1)
        wait_until(lambda: events(running, "round", [0])[-1]["trained"] == 2, 60, "a round of two")
        running.restart(1)
        wait_until(lambda: events(running, "round", [0])[-1]["trained"] == 3, 60, "one of three")
        stop(running)
        weights_are_equal(running)


def test_all_know_what_was_asked_for(job):  # noqa: F811
    with job(2, 1_000_000, min_workers=1, more=delayed()) as running:
        wait_until(lambda: running.step(0) > H, 60, "a round")
        running.kill(1)
        other = repr([*eval(running.command[3])[:-1], {}])
        running.processes[running.present(1)].wait(60)
        running.restart(1, [*running.command[:3], other])
        process = running.processes[running.present(1)]
        wait_until(lambda: process.poll() is not None, 60, "its end")
        last = running.output(running.present(1)).strip().splitlines()[-1]
        assert "differ in fragment_sync_delay: '0' and '2'" in last
