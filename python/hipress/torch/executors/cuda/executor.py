"""Executor of buckets that are encoded on their GPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hipress.errors import HipressError
from hipress.torch.executors.collectives import AllReduce
from hipress.torch.executors.cuda.cuda_program import CudaProgram
from hipress.torch.executors.cuda.device import DEVICES
from hipress.torch.executors.engine import ProcessGroupEngine
from hipress.torch.executors.user_group import GroupAllReduce, GroupReduceScatter
from hipress.torch.gradient import Gradient
from hipress.torch.settings import Settings, digest
from hipress.torch.state.error_feedback import Codecs, ErrorFeedback, keep_on
from hipress.torch.state.momentum import SharedMomentum


class CudaExecutor:
    """Executor that creates buckets on one GPU; see :class:`HostExecutor`."""

    def __init__(
        self,
        settings: Settings,
        engine: ProcessGroupEngine,
        collective: AllReduce,
        error_feedback: ErrorFeedback,
        shared: SharedMomentum | None,
        device: torch.device,
    ) -> None:
        self.engine, self.shared = engine, shared
        self.device = DEVICES[device.type](device)
        self._settings, self._collective = settings, collective
        self._error_feedback = error_feedback
        keep_on(device, error_feedback)

    def codecs_warm_up(self, step: int) -> bool:
        """Return whether payloads may be longer than after the codec's own warm-up."""
        steps = int(self._settings.params.get("warmup", 0))
        # Codecs count what they encode.
        return bool(steps) and step < self._settings.warmup_steps + steps

    def tasks(self) -> dict:
        """Return nothing, because a gradient has no tasks before its first step."""
        return {}

    def poll(self) -> None:
        """Raise a failure that is known by now, without waiting."""
        problem = self.device.poll()
        if problem:
            self.engine.fail(HipressError(problem), "")
        if not self.engine.error and (failure := self.engine.failure()):
            self.engine.fail(failure, "")  # NCCL may find out much later
        if self.engine.error:
            raise self.engine.error

    def join(self) -> None:
        """Make the caller's stream wait for all that is queued."""
        self.device.join()

    def bucket(
        self,
        flat: torch.Tensor,
        compressed: Sequence[Gradient],
        uncompressed: Sequence[Gradient],
        codecs_warm_up: bool,
    ) -> CudaSteps:
        """Prepare the steps of a bucket, for tensors like ``flat``."""
        group_sum = self._collective.on_user_group(uncompressed) if uncompressed else None
        program = None
        if compressed:
            settings, codecs = self._settings, self._error_feedback.codecs
            if not codecs_warm_up and settings.params.get("warmup"):
                # From here on payloads are shorter, and their whole memory is sent.
                codecs = Codecs(settings.type, {**settings.params, "warmup": 0}, codecs.average)
            program = CudaProgram(
                self.device,
                self._collective.group,
                compressed,
                [self._collective.graph(gradient) for gradient in compressed],
                self.engine.rank,
                self.engine.world_size,
                flat.dtype,
                self._error_feedback,
                digest(f"{settings.describe()} {list(compressed)} {flat.dtype}"),
                codecs,
            )
        return CudaSteps(self, program, group_sum, compressed, uncompressed)


class CudaSteps:
    """Steps of one bucket on the GPU, by ``program``, and uncompressed ones by ``group_sum``."""

    def __init__(
        self,
        executor: CudaExecutor,
        program: CudaProgram | None,
        group_sum: GroupAllReduce | GroupReduceScatter | None,
        compressed: Sequence[Gradient],
        uncompressed: Sequence[Gradient],
    ) -> None:
        self.program, self._executor, self._group_sum = program, executor, group_sum
        self._compressed, self._uncompressed = compressed, uncompressed

    def start(self, flat: torch.Tensor, what: str) -> torch.futures.Future:
        """Queue a step of the bucket that errors call ``what``, and return the future of ``flat``.

        It first raises the error of an earlier step, if one was found.
        """
        executor, program = self._executor, self.program
        engine, device, shared = executor.engine, executor.device, executor.shared

        def work() -> None:
            if program:
                if shared:
                    shared.add(flat, self._compressed)
                program.run(flat)
                if shared:
                    shared.keep(flat, self._compressed)
                device.report(program.numbers, problem)
            if self._group_sum:
                pending = self._group_sum.start(flat)
                engine.wait(pending.work, what, flat.device)
                pending.unpack()
                if shared:
                    shared.add_uncompressed(flat, self._uncompressed)

        def problem(numbers: torch.Tensor) -> str:
            found = program.problem(numbers)
            return found and f"{what}: {found}"

        executor.poll()
        return device.enqueue(flat, work)
