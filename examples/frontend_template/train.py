"""Trains a linear classifier on handwritten digits with the NumPy front end.

tools/launch.py -n 2 -s 1 .venv/bin/python examples/frontend_template/train.py onebit
"""

import numpy_frontend as hvd  # isort: skip (first)

import hashlib
import sys

import numpy as np
from sklearn.datasets import load_digits

weights = {"weight": np.zeros((64, 10), np.float32), "bias": np.zeros(10, np.float32)}
compression = {"type": sys.argv[1] if len(sys.argv) > 1 else "none", "min_size": 100}
averager = hvd.Averager(weights, compression)
rank, workers = averager.node.rank, averager.node.num_workers

digits = load_digits()
images, labels = (digits.data / 16).astype(np.float32)[rank::workers], digits.target[rank::workers]
gradients = {name: np.empty_like(value) for name, value in weights.items()}
for _ in range(100):
    scores = np.exp(images @ weights["weight"] + weights["bias"])
    errors = scores / scores.sum(axis=1, keepdims=True)
    errors[np.arange(len(labels)), labels] -= 1
    gradients["weight"][:] = images.T @ errors / len(images)
    gradients["bias"][:] = errors.mean(axis=0)
    averager.average(gradients)
    for name in weights:
        weights[name] -= 1.0 * gradients[name]
right = (images @ weights["weight"] + weights["bias"]).argmax(axis=1) == labels
digest = hashlib.sha256(b"".join(value.tobytes() for value in weights.values())).hexdigest()[:16]
print(f"accuracy {right.mean():.3f}, weights {digest}")
