"""The C ABI in Python: declarations from the header, and errors with attributes."""

from __future__ import annotations

import contextlib
import ctypes
import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.cluster import run_cluster
from hipress import Compressor, errors
from hipress.errors import Cause, Code, HipressError
from hipress.native import library
from hipress.native.declarations import Declarations, statements
from hipress.native.library import abi, lib
from hipress.runtime.member import JobMember
from hipress.runtime.scheduler import Scheduler

INCLUDE = Path(__file__).resolve().parents[3] / "include" / "hipress"
HEADER = """
/*! \\brief A comment; it is skipped. */
#define HIPRESS_SMALL (-2)
typedef enum HipressColor {
  HIPRESS_RED = 0, /* warm */
  HIPRESS_BLUE = 7
} HipressColor;
typedef struct HipressThing* HipressThingHandle;
typedef struct HipressPair {
  int64_t first, second; // two
  const char* const* names;
  int (*call)(void);
} HipressPair;
typedef void (*HipressReport)(void* context, const HipressPair* pair);
HIPRESS_API int HipressUse(HipressThingHandle thing, const HipressPair* pairs,
                           float* out, int64_t* count, const char** text, HipressReport report);
"""


def test_every_declaration_of_the_headers_is_made():
    text = "".join((INCLUDE / name).read_text("utf-8") for name in ("c_api.h", "mxnet.h"))
    assert statements(lib.HipressDeclarations().decode()) == statements(text)
    assert len(abi.functions) == text.count("\nHIPRESS_API ")
    assert all(getattr(lib, name).argtypes == types for name, (_, types) in abi.functions.items())


def test_declaration_forms_become_ctypes():
    api = Declarations(HEADER)
    assert (api.HIPRESS_SMALL, api.HIPRESS_RED, api.HIPRESS_BLUE) == (-2, 0, 7)
    assert api.HipressThingHandle is ctypes.c_void_p
    assert api.HipressPair._fields_ == [
        ("first", ctypes.c_int64),
        ("second", ctypes.c_int64),
        ("names", ctypes.POINTER(ctypes.c_char_p)),
        ("call", ctypes.CFUNCTYPE(ctypes.c_int)),
    ]
    assert api.HipressReport._argtypes_ == (ctypes.c_void_p, ctypes.POINTER(api.HipressPair))
    assert api.functions == {
        "HipressUse": (
            ctypes.c_int,
            [
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.POINTER(ctypes.c_int64),
                ctypes.POINTER(ctypes.c_char_p),
                api.HipressReport,
            ],
        )
    }


@pytest.mark.parametrize("text", ["typedef int Number;", "struct Row { int cells : 3; };"])
def test_unknown_form_of_a_declaration_is_refused(text):
    with pytest.raises(ValueError, match="of a form that is not known here"):
        Declarations(text)


def test_library_built_from_another_header_is_refused(monkeypatch: pytest.MonkeyPatch):
    other = statements("HIPRESS_API int HipressStop(int64_t another_argument);")
    monkeypatch.setattr(library, "_expected_statements", lambda: other)
    with pytest.raises(ImportError, match="is of another version .* build it again"):
        library._load()


@pytest.mark.parametrize(("names", "prefix"), [(Code, "ERROR"), (Cause, "CAUSE")])
def test_error_enums_are_those_of_the_header(names, prefix):
    prefix = f"HIPRESS_{prefix}_"
    found = {n.removeprefix(prefix): v for n, v in vars(abi).items() if n.startswith(prefix)}
    assert found == {each.name: each.value for each in names}


def test_errors_keep_their_attributes():
    error = HipressError("a", code=Code.JOB, cause=Cause.DIED, role="worker", rank=3)
    for copy in (error.as_kind(ValueError), pickle.loads(pickle.dumps(error))):
        assert str(copy) == "a" and vars(copy) == vars(error)
    with pytest.raises(ValueError, match="nonsense") as caught:
        Compressor("nonsense")
    assert caught.value.code == Code.CALL and caught.value.cause == Cause.NONE
    assert caught.value.role is caught.value.rank is None
    assert isinstance(errors.HipressError("b"), RuntimeError)


@contextlib.contextmanager
def two_workers(**options) -> Iterator[list[JobMember]]:
    common = {
        "DMLC_NUM_WORKER": 2,
        "DMLC_NUM_SERVER": 0,
        "DMLC_PS_ROOT_URI": "127.0.0.1",
        "HIPRESS_SECRET": "0123456789abcdef",
        **options,
    }
    with contextlib.ExitStack() as stack:
        own = {"DMLC_ROLE": "scheduler", "DMLC_PS_ROOT_PORT": 0}
        scheduler = Scheduler({**common, **own})
        stack.callback(scheduler.stop, at_once=True)
        port = scheduler.address.rpartition(":")[2]

        def join(rank: int) -> JobMember:
            own = {"DMLC_ROLE": "worker", "DMLC_WORKER_ID": rank, "DMLC_PS_ROOT_PORT": port}
            return JobMember({**common, **own})

        with ThreadPoolExecutor(2) as pool:
            members = list(pool.map(join, range(2)))
        for member in members:
            stack.callback(member.abort)
        yield members


def job_error_of(member: JobMember) -> HipressError:
    until = time.monotonic() + 20
    while (error := member.job_error()) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    return error


def test_dead_worker_is_named_by_attributes_and_by_the_users_rank():
    with two_workers(HIPRESS_RANKS="4,7") as (first, second):
        second.abort()
        error = job_error_of(first)
    assert (error.code, error.cause) == (Code.JOB, Cause.DIED)
    assert (error.role, error.rank) == ("worker", 1)
    assert str(error).startswith("rank 7 (127.0.0.1:") and " died: " in str(error)
    assert first.failure() == str(error)


def test_reported_error_names_the_reporting_rank_and_keeps_its_text():
    with two_workers(HIPRESS_RANKS="4,7") as (first, second):
        lib.HipressFailJob(second.handle, b"rank 7 gave up: no memory for 'worker 1.bias'")
        for member in (first, second):
            error = job_error_of(member)
            assert str(error) == "rank 7 gave up: no memory for 'worker 1.bias'"
            assert (error.code, error.cause) == (Code.JOB, Cause.REPORTED)
            assert (error.role, error.rank) == ("worker", 1)
            with pytest.raises(HipressError) as caught:
                member._check(lib.HipressAwaitEncodes(member.handle))
            assert vars(caught.value) == vars(error)


def test_norm_of_states_is_that_of_the_residual():
    def program():
        import numpy as np

        from hipress.runtime.node import Node

        with Node() as node:
            node.set_gradient_compression({"type": "2bit", "threshold": 0.5, "min_size": 0})
            node.init_array(0, np.zeros(100, np.float32), "w")
            node.pushpull(0, np.full(100, 0.75, np.float32)).wait(20)
            print("norms:", node.norm_of_states(), node.norm_of_states(first=1))

    *_, worker = run_cluster(program, workers=1, servers=1, timeout=60)
    assert "norms: 2.5 0.0" in worker.output  # each element leaves 0.25 of 0.75
