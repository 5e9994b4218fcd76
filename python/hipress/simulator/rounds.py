"""Mean time of an inner step, in training that synchronizes weights every H steps.

A round is H inner steps. In it, each *fragment*, a part of the model, is sent once, after the step
that is its turn (Douillard et al., Streaming DiLoCo, arXiv:2501.18512). With a delay of D steps,
training waits for a fragment only if it has not returned after D more steps; with 0 it waits at
once. Fragments that are sent at the same time follow one another on the links. A fragment takes the
time of a step without computation, with the same graphs (:mod:`hipress.simulator.step`).

Steps of an inner or outer optimizer count as computation. Connections know their link's rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hipress.local_sgd.schedule import split, start_step
from hipress.planning.cluster import Cluster, Costs
from hipress.planning.plan import Decision
from hipress.simulator.models import Model
from hipress.simulator.step import Options, simulate

ROUNDS = 8
"""Number of simulated rounds. The mean is that of the second half."""


@dataclass(frozen=True)
class Rounds:
    """Schedule of the synchronization of weights, as in :class:`hipress.torch.DiLoCo`."""

    sync_every: int
    """Inner steps between two synchronizations of the same weights."""
    fragments: int = 1
    delay: int = 0
    """Inner steps during which a fragment may be sent."""

    def __post_init__(self) -> None:
        if self.sync_every < 1:
            raise ValueError(f"weights travel every 1 step or more, not {self.sync_every}")
        if not 1 <= self.fragments <= self.sync_every:
            raise ValueError(
                f"fragments must be 1 to {self.sync_every}, the steps of a round, "
                f"not {self.fragments}"
            )
        if not 0 <= self.delay < self.sync_every:
            raise ValueError(
                f"a fragment may travel 0 to {self.sync_every - 1} steps, fewer than a round has, "
                f"not {self.delay}"
            )

    def turn(self, fragment: int) -> int:
        """Return the step of a round, from 1 on, after which a fragment is synchronized."""
        return start_step(fragment, self.fragments, self.sync_every)


@dataclass(frozen=True)
class Mean:
    """Mean inner step of a round."""

    seconds: float
    computing: float
    """Share of computation in it."""
    bytes_per_host: float
    fragment_seconds: tuple[float, ...]
    """Seconds of each fragment's synchronization, alone on the links."""


def mean_step(
    model: Model,
    costs: Costs,
    cluster: Cluster,
    options: Options,
    rounds: Rounds,
    plan: Mapping[str, Decision] | None = None,
) -> Mean:
    """Simulate rounds of training; see :func:`hipress.simulator.step.simulate`."""
    compute = sum(model.forward) + sum(model.backward)
    fragments = [
        simulate(part, costs, cluster, replace(options, overlap_forward=False), plan)
        for part in cut(model, rounds.fragments)
    ]
    takes = tuple(part.seconds for part in fragments)
    total = _round_seconds(compute, takes, replace(rounds, fragments=len(takes)))
    return Mean(
        seconds=total / rounds.sync_every,
        computing=compute * rounds.sync_every / total if total > 0 else 1.0,
        bytes_per_host=sum(part.bytes_per_host for part in fragments) / rounds.sync_every,
        fragment_seconds=takes,
    )


def cut(model: Model, fragments: int) -> list[Model]:
    """Return neighboring layers in parts of about equal size, as DiLoCo partitions them."""
    still = (0.0,) * len(model.layers)
    return [
        replace(
            model,
            layers=tuple(model.layers[i] for i in run),
            forward=still[: len(run)],
            backward=still[: len(run)],
        )
        for run in split([layer.size for layer in model.layers], fragments)
    ]


def _round_seconds(compute: float, takes: tuple[float, ...], rounds: Rounds) -> float:
    """Return the seconds of a round."""
    now = free = half = 0.0
    sending: dict[int, tuple[int, float]] = {}  # by fragment: the step it is due after, its end
    for step in range(1, ROUNDS * rounds.sync_every + 1):
        now += compute
        for fragment, seconds in enumerate(takes):
            if fragment in sending and sending[fragment][0] == step:
                now = max(now, sending.pop(fragment)[1])
            if step % rounds.sync_every == rounds.turn(fragment) % rounds.sync_every:
                free = max(now, free) + seconds
                if rounds.delay:
                    sending[fragment] = (step + rounds.delay, free)
                else:
                    now = free
        if step == ROUNDS // 2 * rounds.sync_every:
            half = now
    return (now - half) / (ROUNDS - ROUNDS // 2)
