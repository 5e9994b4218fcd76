"""Gathers of FSDP2's weights that a GPU encodes, and whose messages travel in a process group."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist

from hipress.runtime.error_feedback import Codecs, ErrorFeedback
from hipress.topology.graph import Graph
from hipress.torch.executors.cuda.cuda_program import CudaProgram
from hipress.torch.executors.cuda.device import Device
from hipress.torch.executors.weight_staging import DeviceWeights
from hipress.torch.gradient import Gradient
from hipress.torch.settings import digest
from hipress.torch.state.error_feedback import keep_on

Begin = Callable[[torch.Tensor], Callable[[], object]]
"""Function that starts a gather in a flat tensor, and returns the function that waits for it."""


class EncodedWeights(DeviceWeights):
    """Gathers of one model's weights that its GPU encodes, on its own stream.

    Args:
        encoder: the GPU with the codecs' kernels
        group: ranks that gather
    """

    def __init__(self, encoder: Device, group: dist.ProcessGroup) -> None:
        super().__init__(encoder.cuda)
        self._encoder, self._group = encoder, group

    def poll(self) -> str:
        """See :class:`DeviceWeights`."""
        return super().poll() or self._encoder.poll()

    def gather(self, graph: Graph, dtype: torch.dtype, codecs: Codecs, what: str) -> Begin:
        """Return the gather of ``graph``. Errors call it ``what``.

        The caller's stream waits for the result, and the host does not.
        """
        encoder, group = self._encoder, self._group
        rank, world_size = dist.get_rank(group), dist.get_world_size(group)
        stateless = ErrorFeedback(codecs, rank, world_size)
        keep_on(encoder.device, stateless)
        program = CudaProgram(
            encoder,
            group,
            [Gradient(what, 0, graph.n)],
            [graph],
            rank,
            world_size,
            dtype,
            stateless,
            digest(f"{what} {graph.n} {dtype}"),
            codecs,
            checked=False,
        )

        def begin(flat: torch.Tensor) -> Callable[[], object]:
            def work() -> None:
                program.run(flat)
                encoder.report(program.numbers, program.problem)

            return encoder.enqueue(flat, work).wait

        return begin
