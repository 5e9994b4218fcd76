"""PyTorch's own tests of distributed backends, for the backend "hipress".

`test_torch_backend_suite.py` runs this as a program. It is a unittest program whose arguments are
those of unittest, and compresses everything that it can without loss, so that results are exact.
"""

import os
import tempfile

if __name__ == "__main__":
    _folder = tempfile.TemporaryDirectory()
    os.environ |= {
        "BACKEND": "hipress",
        "WORLD_SIZE": "2",
        "TEMP_DIR": _folder.name,
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": "60",
        "HIPRESS_COMPRESSION": "lossless",
        "HIPRESS_MIN_SIZE": "0",
    }

import torch
from torch.testing._internal.common_utils import run_tests
from torch.testing._internal.distributed.distributed_test import DistributedTest, TestDistBackend

import hipress.torch  # noqa: F401


class TestHipress(TestDistBackend, DistributedTest._DistTestBase):
    """PyTorch's tests, in processes that are forked instead of spawned, without repeated
    imports."""

    def setUp(self) -> None:
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_tests()
