"""CUDA kernels of hipress.torch.ops: CompLL's CUDA code on tensors' memory and torch's stream.

Encoding neither waits for the device nor copies. Decoding waits once, to report a malformed
payload. The code is in libhipress_cuda.so. Code that is not there is compiled by nvcc when a codec
is first used, and kept (hipress.compression.compiler.cuda).
"""

from __future__ import annotations

from functools import lru_cache

import torch

from hipress.compression import compiler
from hipress.compression.compiler.cuda import Algorithm, DecodeCall, built_in, built_in_library
from hipress.compression.compressor import Compressor


class CudaKernels:
    """The functions of ops.CpuKernels."""

    def __init__(self) -> None:
        self.algorithm = lru_cache(maxsize=256)(self._algorithm)

    def encode(
        self,
        codec: Compressor,
        gradient: torch.Tensor,
        states: list[torch.Tensor],
        stream: int,
        payload: torch.Tensor,
    ) -> torch.Tensor:
        """Encode; see :class:`hipress.torch.ops.CpuKernels`."""
        algorithm, n = self.algorithm(codec.config), gradient.numel()
        values = gradient.float()
        size = gradient.new_empty(1, dtype=torch.int64)
        work = gradient.new_empty(algorithm.encode_workspace(n), dtype=torch.uint8)
        if not codec.fixed_size:
            payload.zero_()  # beyond its size: the same bits in every run
        call = algorithm.encode_call(
            values.data_ptr(),
            n,
            [state.data_ptr() for state in states[:-1]],
            payload.data_ptr(),
            payload.numel(),
            size.data_ptr(),
            work.data_ptr(),
            int(states[-1]) if states else 0,
            stream & 0xFFFFFFFF,
        )
        # Memory that is freed now is used again by this stream only after the kernels.
        algorithm.encode(call, self.handle(gradient.device))
        return size

    def decode(
        self, codec: Compressor, payload: torch.Tensor, size: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        """Decode; see :class:`hipress.torch.ops.CpuKernels`."""
        values = out
        if out.dtype != torch.float32:
            values = out.new_empty(out.shape, dtype=torch.float32)
        self._decode(codec, payload, size, values, add=False)
        if values is not out:
            out.copy_(values)

    def decode_sum(
        self,
        codec: Compressor,
        payloads: list[torch.Tensor],
        sizes: list[torch.Tensor | None],
        out: torch.Tensor,
    ) -> None:
        """Decode and sum; see :class:`hipress.torch.ops.CpuKernels`."""
        for k, (payload, size) in enumerate(zip(payloads, sizes)):
            self._decode(codec, payload, size, out, add=k > 0)

    def _decode(
        self,
        codec: Compressor,
        payload: torch.Tensor,
        size: torch.Tensor | None,
        out: torch.Tensor,
        add: bool,
    ) -> None:
        algorithm, n = self.algorithm(codec.config), out.numel()
        if size is None:
            size = torch.full((1,), payload.numel(), dtype=torch.int64, device=payload.device)
        if payload.data_ptr() % 4:
            payload = payload.clone()
        status = payload.new_empty(2, dtype=torch.int64)
        work = payload.new_empty(algorithm.decode_workspace(n), dtype=torch.uint8)
        call = DecodeCall(
            payload.data_ptr(),
            size.data_ptr(),
            payload.numel(),
            n,
            out.data_ptr(),
            status.data_ptr(),
            work.data_ptr(),
        )
        algorithm.decode(call, add, self.handle(payload.device))
        found = status.tolist()
        if found[0] != 0:
            raise ValueError(
                f"a {codec.type} payload of {n} elements and {int(size)} bytes is refused: it "
                f"{algorithm.sentence(found)}"
            )

    def handle(self, device: torch.device) -> int:
        """Return the current stream, on which kernels are launched."""
        return torch.cuda.current_stream(device).cuda_stream

    def _algorithm(self, config: str) -> Algorithm:
        """Return the code of a codec's configuration."""
        pairs = dict(word.split("=", 1) for word in config.split())
        type_, spec = pairs.pop("type"), pairs.pop("spec", None)
        path = compiler.loaded_sources.get(type_, compiler.SPECS / f"{type_}.cll")
        try:
            program = compiler.compile_file(path)
        except FileNotFoundError:
            raise NotImplementedError(f"there is no CUDA code for {type_}") from None
        if spec is not None and program.digest != spec:
            raise RuntimeError(f"{path} is no longer what {type_} was loaded from; start again")
        integers = {param.name for param in program.params if param.integer}
        values = {
            name: int(text) if name in integers else float(text) for name, text in pairs.items()
        }
        return self.load(program, values)

    def load(self, program: compiler.Program, values: dict[str, float | int]) -> Algorithm:
        """Load the code of a program with these parameters: built-in, or compiled by nvcc now."""
        library = built_in_library()
        entry = built_in(program, library)
        if entry is None:
            return Algorithm(program, **values)
        return Algorithm(program, library, entry=entry, **values)
