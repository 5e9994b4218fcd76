"""Gradients that are too small to compress, on their way beside a bucket's large ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import torch

from hipress.torch.layout import Gradient
from hipress.torch.tasks import InFlat, TaskOp, Tasks

if TYPE_CHECKING:
    from hipress.torch.engine import Engine
    from hipress.torch.plan import Plan


class Joined:
    """Copies a bucket's small gradients into one piece of memory, and back.

    :param place: for all of their elements, one gradient behind the other; float32, or the bucket's
        own type
    :param dtype: of the bucket
    """

    def __init__(
        self, gradients: Sequence[Gradient], place: torch.Tensor, dtype: torch.dtype
    ) -> None:
        self._take, self._give = Tasks(dtype), Tasks(dtype)
        at = 0
        for gradient in gradients:
            for piece in gradient.slices():
                count, here = piece.stop - piece.start, InFlat(piece.start)
                self._take.add(TaskOp.COPY, count, source=here, target=place[at : at + count])
                self._give.add(TaskOp.COPY, count, source=place[at : at + count], target=here)
                at += count
        self._take.complete()
        self._give.complete()

    def take(self, flat: torch.Tensor) -> None:
        """From the bucket."""
        self._take.run(flat)

    def give(self, flat: torch.Tensor) -> None:
        """Back to the bucket."""
        self._give.run(flat)


class Beside:
    """Small gradients in messages of their own, which are on their way before any large one's
    first payload is encoded.

    :param dtype: of the bucket
    :param plan: that averages (or sums) all their elements, uncompressed
    :param tag: of its messages
    """

    def __init__(
        self, gradients: Sequence[Gradient], dtype: torch.dtype, plan: Plan, tag: int
    ) -> None:
        self._plan, self._tag = plan, tag
        count = sum(gradient.count for gradient in gradients)
        self._values = torch.zeros(count, dtype=dtype, device="cpu")
        self._joined = Joined(gradients, self._values, dtype)

    def start(
        self, engine: Engine, flat: torch.Tensor, what: str, after: threading.Event | None
    ) -> Callable[[], None]:
        """Starts to synchronise them, once ``after`` is set; what it returns waits for that, and
        puts the results into ``flat``."""
        done = threading.Event()

        def job() -> None:
            try:
                if after is not None:
                    after.wait()
                self._joined.take(flat)
                engine.run(self._plan, self._values, self._tag, what)
            except Exception as error:
                engine.fail(error, what)
            finally:
                done.set()

        def finish() -> None:
            done.wait()  # not for ever: the engine's waiting has a limit
            if engine.error:
                raise engine.error
            self._joined.give(flat)

        engine.submit(job)
        return finish
