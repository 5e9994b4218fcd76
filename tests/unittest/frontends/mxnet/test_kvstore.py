"""The key-value store across real processes, without a framework: values, codecs, modes, bytes."""

import ctypes
import json
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from harness.cluster import run_cluster, worker_outputs
from hipress.native.library import abi
from hipress.runtime.operations import Operations, Pending, memory_of
from scripts import SCRIPTS

SERVER = (sys.executable, "-c", "from hipress.runtime.node import Node; Node().serve()")


def test_memory_is_found_whoever_may_write_it():
    array = np.arange(4, dtype=np.float32)
    found = (array.ctypes.data, 4, 0)
    assert memory_of(array) == found
    array.flags.writeable = False
    assert memory_of(array) == found
    assert memory_of(array[:0])[1] == 0


def test_ends_of_operations_reach_whoever_waits_one_by_one_or_together():
    operations = Operations()
    pending = [Pending(ValueError) for _ in range(4)]
    contexts = [operations.add(each) for each in pending]
    together = (ctypes.c_void_p * 2)(contexts[0], contexts[2])
    operations.on_done_together(together, 2)
    died = abi.HipressError(abi.HIPRESS_ERROR_JOB, abi.HIPRESS_CAUSE_DIED, 2, 1, b"worker 1 died")
    operations.on_done(contexts[1], ctypes.byref(died))
    pending[0].wait(0)
    pending[2].wait(0)
    with pytest.raises(ValueError, match="worker 1 died"):
        pending[1].wait(0)
    with pytest.raises(TimeoutError):
        pending[3].wait(0)
    waiting = [threading.Thread(target=pending[3].wait, args=[20]) for _ in range(3)]
    for thread in waiting:
        thread.start()
    operations.on_done(contexts[3], None)
    for thread in waiting:
        thread.join(20)
        assert not thread.is_alive()
    pending[3].wait(0)


def run(script: Path, **options):
    """Run a script on every worker and check that all reach the end."""
    options.setdefault("server_command", SERVER)
    results = run_cluster(script, **options)
    outputs = worker_outputs(results)
    assert all("finished" in output for output in outputs)
    return outputs


def test_values_without_compression():
    run(
        SCRIPTS / "store" / "values.py",
        workers=3,
        servers=2,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "4000", "HIPRESS_PARTITION_ELEMENTS": "65536"},
    )


def test_float16():
    run(SCRIPTS / "store" / "float16.py")


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize(
    "params",
    [
        {"type": "2bit", "threshold": 0.75},
        {"type": "1bit"},
        {"type": "onebit"},
    ],
    ids=lambda p: p["type"],
)
def test_every_codec_equals_the_numpy_reference(params):
    run(
        SCRIPTS / "store" / "reference.py",
        args=[json.dumps(params)],
        workers=3,
        servers=2,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_compression_can_change_in_mid_training_and_nothing_is_lost():
    # Workers switch at different iterations, so servers merge payloads of different codecs. In the
    # end, uncompressed, all residuals have arrived.
    run(
        SCRIPTS / "store" / "change_compression.py",
        workers=3,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "1024"},
    )


def test_bytes_on_the_wire_are_what_the_format_says():
    outputs = run(SCRIPTS / "store" / "bytes.py")
    assert all("checked" in output for output in outputs)


def test_pull_can_stay_uncompressed():
    run(SCRIPTS / "store" / "uncompressed_pull.py")


OPTIMIZER = (sys.executable, str(SCRIPTS / "store" / "optimizer_server.py"))


def test_optimizer_on_servers():
    run(
        SCRIPTS / "store" / "optimizer.py",
        server_command=OPTIMIZER,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "512"},
    )


def test_asynchronous_mode():
    run(
        SCRIPTS / "store" / "asynchronous.py",
        server_command=OPTIMIZER,
        env={"MXNET_KVSTORE_BIGARRAY_BOUND": "1000", "HIPRESS_PARTITION_ELEMENTS": "512"},
    )


def test_a_run_repeated_gives_the_same_bits():
    script = SCRIPTS / "store" / "digest.py"
    digests = set()
    for _ in range(2):
        for output in run(script, workers=4):
            digests.add(next(x for x in output.splitlines() if x.startswith("digest")))
    assert len(digests) == 1


def test_a_push_is_over_when_its_memory_is_free_not_when_others_have_pushed():
    # Large and uncompressed data on the same host is shared, not sent.
    worker_outputs(
        run_cluster(
            SCRIPTS / "store" / "late_push.py",
            server_command=SERVER,
        )
    )


def test_a_worker_that_leaves_has_sent_what_it_pushed():
    """A worker that leaves has sent what it pushed, although no worker has pulled it and a push
    waits for the one before."""
    run(
        SCRIPTS / "store" / "leaves_early.py",
        server_command=OPTIMIZER,
        workers=2,
    )


@pytest.mark.slow
def test_an_optimizer_that_hangs_is_named():
    """An optimizer of a server that hangs is reported with the server and key.

    Cost: The timeout is 3 s, and the optimizer hangs for 10 s, which the server's end waits
    for.
    """
    outputs = run(
        SCRIPTS / "store" / "hanging_optimizer.py",
        server_command=(*OPTIMIZER, "hang"),
        workers=2,
        env={"HIPRESS_TIMEOUT": "3"},
        check=False,
    )
    for output in outputs:
        assert "waited 3 s for the optimizer of server" in output
        assert "to end iteration 2 of key" in output
