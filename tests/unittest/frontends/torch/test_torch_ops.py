"""torch.ops.hipress: the bytes of hipress.Compressor, torch's own checks, and torch.compile."""

from __future__ import annotations

import threading

import pytest

import cuda_emulation
import hipress
from compll_helpers import gradient
from hipress.compression import compiler

torch = pytest.importorskip("torch")
ops = pytest.importorskip("hipress.torch.ops")

N = 1000
TYPES = sorted(hipress.codecs())
RANDOM = ["dgc", "maxmin", "natural", "randomk", "terngrad"]


def op(kind: str, type_: str) -> object:
    return getattr(torch.ops.hipress, f"{kind}_{type_}")


def parts(encoded: object) -> tuple[torch.Tensor, ...]:
    """Return (payload,) or (payload, size), as decoders take them."""
    return encoded if isinstance(encoded, tuple) else (encoded,)


def payload_bytes(encoded: object) -> bytes:
    payload, *size = parts(encoded)
    return payload[: int(size[0]) if size else None].numpy().tobytes()


def tensor(n: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.from_numpy(gradient(n, seed)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("type_", TYPES)
def test_operators_give_the_compressors_bytes(type_, dtype):
    for n in (0, 1, N):
        codec = hipress.Compressor(type_)
        states = ops.new_states(type_, tensor(n))
        payloads = []
        for step in range(3):
            x = tensor(n, step, dtype)
            encoded = op("encode", type_)(x, *states)
            payload = codec.encode(x)
            assert payload_bytes(encoded) == payload
            decoded = op("decode", type_)(*parts(encoded), n, dtype=dtype)
            assert torch.equal(decoded, codec.decode(payload, out=torch.empty_like(x)))
            payloads.append((parts(encoded), payload))
        for name, state in zip(codec.state_names, states):
            assert state.numpy().tobytes() == codec.state_dict()["states"][name].tobytes()
        if type_ == "none" and dtype != torch.float32:
            continue
        lists = [list(column) for column in zip(*(encoded for encoded, _ in payloads))]
        total = op("decode_sum", type_)(*lists, n)
        expected = codec.decode_sum([payload for _, payload in payloads], n)
        assert total.numpy().tobytes() == expected.tobytes()


@pytest.mark.parametrize("type_", TYPES)
def test_torchs_own_checks(type_):
    """PyTorch's own checks pass: schemas, fake implementations, autograd, and tracing with static
    and dynamic shapes."""
    x = tensor(N)
    torch.library.opcheck(op("encode", type_).default, (x, *ops.new_states(type_, x)))
    encoded = parts(op("encode", type_)(x, *ops.new_states(type_, x)))
    torch.library.opcheck(op("decode", type_).default, (*encoded, N))
    torch.library.opcheck(op("decode_sum", type_).default, (*([e, e] for e in encoded), N))


def step_of(type_: str) -> object:
    def step(x: torch.Tensor, *states: torch.Tensor) -> torch.Tensor:
        encoded = op("encode", type_)(x * 2, *states)
        return op("decode", type_)(*parts(encoded), x.numel()) + 1

    return step


def check_compiled(type_: str, **options: object) -> None:
    step = step_of(type_)
    compiled = torch.compile(step, fullgraph=True, **options)
    eager_states, states = (ops.new_states(type_, tensor(N)) for _ in range(2))
    for seed in range(3):
        x = tensor(N, seed)
        assert torch.equal(compiled(x, *states), step(x, *eager_states))
    for state, eager in zip(states, eager_states):
        assert torch.equal(state, eager)


@pytest.mark.parametrize("type_", TYPES)
def test_one_graph_without_breaks(type_):
    torch._dynamo.reset()
    check_compiled(type_, backend="aot_eager")


@pytest.mark.slow
def test_inductor_compiles_it():
    """PyTorch's Inductor compiles a step with a codec's operator.

    Cost: Inductor compiles C++ code.
    """
    torch._dynamo.reset()
    check_compiled("dgc")


def test_another_size_is_another_graph():
    torch._dynamo.reset()
    compiled = torch.compile(step_of("terngrad"), fullgraph=True, dynamic=True, backend="aot_eager")
    for n in (10, 1000, 1001):
        assert compiled(tensor(n), *ops.new_states("terngrad", tensor(n))).shape == (n,)


def test_parameters_and_streams():
    x = tensor(N)
    for params in ({"bitwidth": 8}, {"seed": 3, "stochastic": 1}):
        encoded = torch.ops.hipress.encode_terngrad(x, *ops.new_states("terngrad", x), **params)
        assert payload_bytes(encoded) == hipress.Compressor("terngrad", **params).encode(x)
    codec = hipress.Compressor("terngrad")
    codec.stream = 9
    encoded = torch.ops.hipress.encode_terngrad(x, *ops.new_states("terngrad", x), stream=9)
    assert payload_bytes(encoded) == codec.encode(x)
    for type_ in RANDOM:
        states = ops.new_states(type_, x)
        first, second = (payload_bytes(op("encode", type_)(x, *states)) for _ in range(2))
        assert first != second or type_ == "dgc", f"{type_} draws the same numbers in every step"


def test_a_loaded_algorithm_is_an_operator(tmp_path):
    path = tmp_path / "copied.cll"
    text = (compiler.SPECS / "onebit.cll").read_text()
    path.write_text(text.replace('algorithm "onebit"', 'algorithm "copied-over"'))
    assert compiler.load(path) == "copied-over"
    x = tensor(N)
    encoded = torch.ops.hipress.encode_copied_over(x, *ops.new_states("copied-over", x))
    assert payload_bytes(encoded) == hipress.Compressor("onebit").encode(x)


def test_bad_calls_are_one_sentence():
    encode, decode = torch.ops.hipress.encode_2bit, torch.ops.hipress.decode_2bit
    x = tensor(N)
    states = ops.new_states("2bit", x)
    payload, size = torch.ops.hipress.encode_dgc(x, *ops.new_states("dgc", x))
    cases = {
        "must be float32, float16 or bfloat16, not torch.f": lambda: encode(x.double(), *states),
        "residual of 2bit must be contiguous torch.float32 of 1000": lambda: encode(
            x, states[0][1:], states[1]
        ),
        "step of 2bit must be contiguous torch.int64": lambda: encode(
            x, states[0], states[1].int()
        ),
        "threshold of .*2bit must be a finite number": lambda: encode(x, *states, threshold=-1.0),
        "not differentiable; give it tensor.detach": lambda: encode(
            x.clone().requires_grad_(), *states
        ),
        "1000 elements must have 252 bytes, not 3": lambda: decode(
            torch.zeros(3, dtype=torch.uint8), N
        ),
        r"a payload must be uint8\[bytes\], not torch.float32": lambda: decode(torch.zeros(3), N),
        "must be float32, .* torch.int8": lambda: decode(encode(x, *states), N, dtype=torch.int8),
        "1 payload or more, not 0": lambda: torch.ops.hipress.decode_sum_2bit([], N),
        "2 payloads need as many sizes, not 1": lambda: torch.ops.hipress.decode_sum_dgc(
            [payload] * 2, [size], N
        ),
    }
    for sentence, call in cases.items():
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(NotImplementedError, match="run on cpu here, not on xpu: there is no codec"):
        ops._backend(type("OnXpu", (), {"device": torch.device("xpu")}))


def test_threads_share_an_operator():
    """Threads share an operator: one codec object serves all of them, and each has separate
    states."""
    results = {}

    def work(seed: int) -> None:
        x = tensor(200_000, seed)
        states = ops.new_states("onebit", x)
        results[seed] = [
            payload_bytes(torch.ops.hipress.encode_onebit(x, *states)) for _ in range(5)
        ]

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    for seed, payloads in results.items():
        codec = hipress.Compressor("onebit")
        assert payloads == [codec.encode(gradient(200_000, seed)) for _ in range(5)]


@pytest.mark.parametrize("type_", ["onebit", "graddrop"])
def test_cuda_kernels_under_emulation(type_):
    """CUDA kernels pass the calls that a GPU gets on a CPU that emulates one, and also on a GPU if
    there is one."""
    kernels = cuda_emulation.kernels()
    backends = [("cpu", kernels)]
    if torch.cuda.is_available():
        backends.append(("cuda", None))
    cpu = ops.BACKENDS["cpu"]
    expected = run_once(type_, "cpu")
    for device, backend in backends:
        try:
            ops.BACKENDS["cpu"] = backend or cpu
            assert run_once(type_, device) == expected
            decode = getattr(torch.ops.hipress, f"decode_{type_}")
            bad = torch.full((3,), 255, dtype=torch.uint8, device=device)
            with pytest.raises(ValueError, match=f"a {type_} payload of 1000 elements and 3 bytes"):
                decode(*([bad] if type_ == "onebit" else [bad, None]), N)
        finally:
            ops.BACKENDS["cpu"] = cpu


def run_once(type_: str, device: str) -> list[bytes]:
    """Return two encodes of a gradient, what they decode to, their sum and the states, as bytes."""
    x = tensor(N).to(device)
    states = ops.new_states(type_, x)
    encodings = [parts(op("encode", type_)(x, *states)) for _ in range(2)]
    results = [op("decode", type_)(*encoded, N) for encoded in encodings]
    results.append(op("decode_sum", type_)(*map(list, zip(*encodings)), N))
    results += [item for encoded in encodings for item in encoded] + states
    return [item.cpu().numpy().tobytes() for item in results]
