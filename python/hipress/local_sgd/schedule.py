"""Inner steps after which fragments start, and how a model is split into fragments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hipress.base.checked import is_count


@dataclass(frozen=True)
class Schedule:
    """Inner steps of Local SGD.

    Args:
        sync_every: H, the number of inner steps between two outer steps of a fragment.
        early_steps: Number of inner steps at the beginning that average all weights every
            ``early_sync_every`` steps and after the last of them.
        early_sync_every: Number of inner steps between two averages in the early steps.
        delay: Number of inner steps during which a fragment's average may run, below
            ``sync_every``.
        alpha: Share of its own weights that a worker keeps in an outer step, in [0, 1).

    Raises:
        ValueError: If a value is out of range.
    """

    sync_every: int
    early_steps: int = 0
    early_sync_every: int = 5
    delay: int = 0
    alpha: float = 0.0

    def __post_init__(self) -> None:
        if not is_count(self.sync_every):
            raise ValueError(f"sync_every must be 1 or more, not {self.sync_every!r}")
        if self.early_steps != 0 and not is_count(self.early_steps):
            raise ValueError(f"early_steps must be 0 or more, not {self.early_steps!r}")
        if not is_count(self.early_sync_every):
            raise ValueError(f"early_sync_every must be 1 or more, not {self.early_sync_every!r}")
        if self.delay != 0 and not (is_count(self.delay) and self.delay < self.sync_every):
            raise ValueError(
                f"fragment_sync_delay must be in [0, sync_every) = [0, {self.sync_every}), "
                f"not {self.delay!r}"
            )
        if not 0 <= self.alpha < 1:
            raise ValueError(f"fragment_update_alpha must be in [0, 1), not {self.alpha!r}")

    def __str__(self) -> str:
        early = f", early {self.early}" if self.early else ""
        return f"every {self.sync_every}{early}, delay {self.delay}"

    @property
    def early(self) -> str:
        """Text that describes the early steps; empty if there are none."""
        return f"{self.early_steps} every {self.early_sync_every}" if self.early_steps else ""

    def check_fragments(self, fragments: Any) -> None:
        """Check that every fragment gets a separate inner step.

        Raises:
            ValueError: If it does not.
        """
        if not is_count(fragments):
            raise ValueError(f"fragments must be 1 or more, not {fragments!r}")
        if fragments > self.sync_every:
            raise ValueError(
                f"sync_every is {self.sync_every}, too few steps for {fragments} fragments"
            )

    def is_early(self, step: int) -> bool:
        """Return whether an inner step, counted from 1, is one of the early steps."""
        return step <= self.early_steps

    def starts(self, step: int, fragment: int = 0, fragments: int = 1) -> bool:
        """Return whether a fragment's average starts after an inner step.

        Args:
            step: Inner step, counted from 1.
            fragment: Index of the fragment.
            fragments: Number of fragments.
        """
        if self.is_early(step):
            return step == self.early_steps or step % self.early_sync_every == 0
        own = start_step(fragment, fragments, self.sync_every)
        return (step - self.early_steps - own) % self.sync_every == 0


def start_step(fragment: int, fragments: int, sync_every: int) -> int:
    """Return the inner step, from 1 to ``sync_every``, after which a fragment's average starts.

    That of the last fragment is the last step.
    """
    return (fragment + 1) * sync_every // fragments


def split(sizes: Sequence[int], fragments: int) -> list[list[int]]:
    """Split neighbors into nonempty runs of about equal size.

    Args:
        sizes: Number of elements of each item.
        fragments: Number of runs. There are fewer if single items are large.

    Returns:
        The indices of the items in each run.
    """
    total, before = sum(sizes), 0
    runs: dict[int, list[int]] = {}
    for index, size in enumerate(sizes):
        middle = before + size / 2
        runs.setdefault(int(middle * fragments / max(total, 1)), []).append(index)
        before += size
    return list(runs.values())
