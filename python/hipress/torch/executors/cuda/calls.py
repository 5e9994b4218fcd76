"""Tasks that are kernels on a GPU: one call each, or many small ones in one launch."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hipress.compression.compiler.cuda import Algorithm, DecodeCall, EncodeCall
from hipress.torch.executors.cuda.device import Device
from hipress.torch.state.error_feedback import DeviceState


class Input:
    """Input of an ENCODE task.

    Args:
        span: elements of the flat tensor, for a rank's own gradient; None: the content of ``dense``
            at that time
        dense: float32 memory of the partition's size, to compute in
        scale: factor of the input
        flag: int64[1] on the device, not 0 if nothing is encoded in the end
    """

    def __init__(
        self,
        span: slice | None,
        dense: torch.Tensor,
        scale: float,
        state: DeviceState,
        flag: torch.Tensor,
    ) -> None:
        self.state = state
        self._span, self._dense, self._scale, self._flag = span, dense, scale, flag

    @property
    def direct(self) -> bool:
        """Whether the input is a part of the flat tensor, unchanged."""
        return self._span is not None and self.state.carried is None

    def tensor(self, flat: torch.Tensor) -> torch.Tensor:
        if self.direct:
            return flat[self._span]
        if self._span is not None:
            self._dense.copy_(flat[self._span])
        if self._scale != 1.0:
            self._dense.mul_(self._scale)
        carried = self.state.carried
        if carried is not None:
            self._dense.add_(carried)
            carried.mul_(self._flag != 0)  # it has been encoded unless the flag is set
        return self._dense


class Copy:
    """An ENCODE whose payload is the unchanged elements."""

    def __init__(self, given: Input, payload: torch.Tensor) -> None:
        self._input, self._payload = given, payload

    def run(self, flat: torch.Tensor) -> None:
        self._payload.copy_(self._input.tensor(flat))
        self._input.state.step += 1


class Encoder:
    """An ENCODE by a kernel.

    Args:
        call: call without the input's address, the step and the workspace of ``space`` bytes
    """

    def __init__(
        self, device: Device, algorithm: Algorithm, given: Input, call: EncodeCall, space: int
    ) -> None:
        self.call, self.space, self._input = call, space, given
        self._device, self._algorithm = device, algorithm

    @property
    def direct(self) -> bool:
        return self._input.direct

    @property
    def step(self) -> int:
        return self._input.state.step

    def prepare(self, flat: torch.Tensor, step: int) -> None:
        """Complete the call."""
        self.call.gradient, self.call.step = self._input.tensor(flat).data_ptr(), step

    def done(self) -> None:
        self._input.state.step += 1

    def run(self, flat: torch.Tensor) -> None:
        self.prepare(flat, self.step)
        self._algorithm.encode(self.call, self._device.handle())
        self.done()

    @staticmethod
    def run_batch(algorithm: Algorithm, calls: int, count: int, step: int, stream: int) -> None:
        algorithm.encode_batch(calls, count, step, stream)


class Decoder:
    """A DECODE into the flat tensor, from element ``offset`` on."""

    direct = True
    step = 0

    def __init__(
        self, device: Device, algorithm: Algorithm, call: DecodeCall, offset: int, space: int
    ) -> None:
        self.call, self.space, self._offset = call, space, offset
        self._device, self._algorithm = device, algorithm

    def prepare(self, flat: torch.Tensor, step: int) -> None:
        self.call.out = flat.data_ptr() + 4 * self._offset

    def done(self) -> None:
        pass

    def run(self, flat: torch.Tensor) -> None:
        self.prepare(flat, 0)
        self._algorithm.decode(self.call, False, self._device.handle())

    @staticmethod
    def run_batch(algorithm: Algorithm, calls: int, count: int, step: int, stream: int) -> None:
        algorithm.decode_batch(calls, count, False, stream)


class Batch:
    """Encoders or decoders of one algorithm in one launch, with a block of threads for each.

    The list of calls is copied to the device when addresses change, because DDP makes other
    buckets.
    """

    def __init__(
        self, device: Device, algorithm: Algorithm, members: Sequence[Encoder | Decoder]
    ) -> None:
        self._device, self._algorithm, self._members = device, algorithm, list(members)
        self._key: tuple | None = None
        self._calls: torch.Tensor | None = None

    def run(self, flat: torch.Tensor) -> None:
        members, first = self._members, self._members[0].step
        if not all(member.direct for member in members):
            for member in members:
                member.run(flat)
            return
        key = (flat.data_ptr(), *(member.step - first for member in members))
        if key != self._key:
            for member in members:
                member.prepare(flat, member.step - first)
            calls = [member.call for member in members]
            self._calls = self._device.cuda.upload(bytes((type(calls[0]) * len(calls))(*calls)))
            self._key = key
        members[0].run_batch(
            self._algorithm, self._calls.data_ptr(), len(members), first, self._device.handle()
        )
        for member in members:
            member.done()
