"""Runs the tutorial's codec as PyTorch operators; argument: the line that loads them."""

import sys

import numpy as np
import torch

exec(sys.argv[1])
x, step = torch.from_numpy(np.load("x.npy")), torch.zeros(1, dtype=torch.int64)
residual = torch.zeros_like(x)
ops = torch.ops.compll


def work(x, residual, step):
    payload = ops.encode_signmean(x, residual, step, boost=0.5)
    return payload, ops.decode_signmean(payload, x.numel())


payload, decoded = work(x, residual, step)
torch.library.opcheck(ops.encode_signmean.default, (x, residual.clone(), step.clone()))
compiled = torch.compile(work, fullgraph=True, backend="aot_eager")
again = compiled(x, torch.zeros_like(residual), torch.zeros_like(step))
assert torch.equal(again[0], payload) and torch.equal(again[1], decoded)
try:
    ops.encode_signmean(x, residual, step, boost=-1)
    raise SystemExit("boost -1 was taken")
except RuntimeError as error:
    assert "boost of compression type signmean must be a finite number > 0" in str(error), error
total = ops.decode_sum_signmean([payload, payload], x.numel())
payload, decoded, total = (tensor.numpy() for tensor in (payload, decoded, total))
assert step.item() == 1
np.savez("result.npz", payload=payload, decoded=decoded, total=total)
