"""Element types of gradients: one table, to which front ends map their own types."""

from __future__ import annotations

import numpy as np

FLAGS = {"float32": 0, "float16": 2, "bfloat16": 12}
"""Numbers of element types in c_api.h, which are MXNet's, by name."""
FLOAT32 = FLAGS["float32"]
NAMES = {flag: name for name, flag in FLAGS.items()}
"""Names of element types by number."""
STORAGE = {"float32": np.float32, "float16": np.float16, "bfloat16": np.uint16}
"""NumPy types (without ml_dtypes) in which elements are stored, by name."""
NUMPY = ("float32", "float16")
"""Names of the element types that NumPy has itself."""
