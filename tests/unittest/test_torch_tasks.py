"""Lists of tasks, which the library does in one call, and the messages they write and read."""

import numpy as np
import pytest
import torch

from hipress.compression import Compressor
from hipress.torch.message import Message
from hipress.torch.tasks import FLAGS, InFlat, TaskOp, Tasks

N = 1003
DTYPES = sorted(FLAGS, key=str)


def numbers(seed, dtype=torch.float32, n=N):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed)).to(dtype)


def run(flat, *tasks):
    """Does tasks of (op, keywords); returns how many were done, and the table."""
    made = Tasks(flat.dtype)
    for op, keywords in tasks:
        made.add(op, keywords.pop("count", N), **keywords)
    made.complete()
    return made.run(flat), made.table


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_copies_and_sums_round_after_each_operation(source, target):
    x, flat = numbers(0, source), numbers(1, target)
    want = (flat.float() + x.float() * 0.3).to(target)
    assert run(flat, (TaskOp.ADD, {"source": x, "target": InFlat(0), "factor": 0.3}))[0] == 1
    assert torch.equal(flat, want)
    run(flat, (TaskOp.COPY, {"source": x, "target": InFlat(0), "factor": 0.3}))
    assert torch.equal(flat, (x.float() * 0.3).to(target))
    run(flat, (TaskOp.COPY, {"source": x, "target": InFlat(0)}))
    assert torch.equal(flat, x.to(target))


def test_the_flat_tensor_may_be_another_one_each_time():
    made = Tasks(torch.float32)
    made.add(TaskOp.COPY, 3, source=InFlat(1), target=InFlat(5))
    made.complete()
    for seed in range(3):
        flat = numbers(seed, n=8)
        want = flat.clone()
        want[5:8] = flat[1:4]
        assert made.run(flat) == 1
        assert torch.equal(flat, want)


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan"), 3e38])
@pytest.mark.parametrize("at", [0, 17, N - 1])
def test_a_sum_that_is_not_finite_ends_the_list(value, at):
    x, flat, after = numbers(0), numbers(1), torch.zeros(N)
    x[at] = flat[at] = value  # 3e38 + 3e38 is too large
    tasks = [
        (TaskOp.ADD_FINITE, {"source": x, "target": InFlat(0)}),
        (TaskOp.COPY, {"source": x, "target": after}),
    ]
    assert run(flat, *tasks)[0] == 0
    assert not after.any()


def test_a_task_of_no_elements_is_left_out():
    flat = numbers(0)
    nowhere = (TaskOp.DECODE_BYTES, {"count": 0, "target": InFlat(0)})
    assert run(flat, nowhere)[0] == 1
    assert torch.equal(flat, numbers(0))


@pytest.mark.parametrize("dtype", DTYPES)
def test_payloads_are_encoded_passed_on_summed_decoded_and_kept(dtype):
    flat, encoder, plain = numbers(0, dtype), Compressor("onebit"), Compressor("onebit")
    payload = plain.encode(flat.float().numpy())
    want = torch.from_numpy(plain.decode(payload, N))
    here, there = (Message([encoder.max_bytes(N, "float32")] * 2, 7) for _ in range(2))
    here.begin(0)
    there.begin(0)
    total, room = torch.empty(N), torch.zeros(len(payload), dtype=torch.uint8)
    done, table = run(
        flat,
        (TaskOp.ENCODE, {"codec": encoder, "source": InFlat(0), "slots": [(here, 1)]}),
        (TaskOp.PASS_ON, {"codec": encoder, "slots": [(here, 1), (there, 0)]}),
        (TaskOp.DECODE_SUM, {"codec": encoder, "target": total,
                             "slots": [(here, 1), (there, 0), (here, 1)]}),
        (TaskOp.DECODE, {"codec": encoder, "target": InFlat(0), "slots": [(there, 0)]}),
        (TaskOp.KEEP, {"source": room, "target": InFlat(0), "slots": [(here, 1)]}),
    )  # fmt: skip
    assert done == 5
    assert torch.equal(total, want + want + want)
    assert torch.equal(flat, want.to(dtype))
    assert room.numpy().tobytes() == bytes(payload)
    assert table["bytes"][-1] == len(payload)
    again = torch.empty(N, dtype=dtype)
    run(again, (TaskOp.DECODE_BYTES, {"codec": encoder, "source": room, "size": len(payload),
                                      "target": InFlat(0)}))  # fmt: skip
    assert torch.equal(again, flat)


def test_what_is_not_finite_is_not_kept():
    flat, room, message = torch.full((N,), float("nan")), torch.ones(1), Message([64], 7)
    keep = (TaskOp.KEEP, {"source": room, "target": InFlat(0), "slots": [(message, 0)]})
    assert run(flat, keep)[1]["bytes"][0] == -1
    assert room.item() == 1


def test_a_refused_payload_is_an_error():
    payload, codec = torch.zeros(5, dtype=torch.uint8), Compressor("onebit")
    task = (TaskOp.DECODE_BYTES, {"codec": codec, "source": payload, "size": 5,
                                  "target": InFlat(0)})  # fmt: skip
    with pytest.raises(RuntimeError, match="onebit"):
        run(numbers(0), task)


LENGTHS = "a message whose lengths do not fit"


@pytest.mark.parametrize(
    "word, value, wrong",
    [
        (0, 1, "a message that is not HiPress's"),
        (2, 8, "a message about other gradients or settings"),
        (4, 3, "a message about other gradients or settings"),
        (1, 64, LENGTHS),
        (1, 1 << 40, LENGTHS),
        (5, 0, LENGTHS),  # in the head
        (5, -64, LENGTHS),
        (5, 129, LENGTHS),  # not at a multiple of 64
        (5, 1 << 40, LENGTHS),
        (6, -1, LENGTHS),
        (6, 1 << 62, LENGTHS),
        (7, (1 << 63) - 64, LENGTHS),
        (6, 64, ""),
    ],
)
def test_messages_are_checked(word, value, wrong):
    message = Message([100, 50], 7)
    message.begin(0)
    words = message.tensor.numpy()[:72].view(np.int64)
    words[1] = 128 + 192
    words[5:9] = [128, 100, 256, 50]
    assert message.check() == ""
    words[word] = value
    assert message.check() == wrong


def test_a_message_with_a_flag_has_no_payloads_to_check():
    message = Message([100, 50], 7)
    message.begin(1)
    message.tensor.numpy()[:72].view(np.int64)[5:9] = -1
    assert message.check() == ""
    assert message.flags == 1
