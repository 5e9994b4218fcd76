"""Calls of every operation on Gloo and on the backend "hipress": same results, or same errors."""

import ast
import datetime
import inspect
import os
import pathlib
import warnings

import pytest

pytest.importorskip("torch")

import torch
import torch.distributed as dist

from harness.torch_ranks import returned, run_ranks

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "complex64",
    "complex128",
    "int8",
    "uint8",
    "int16",
    "int32",
    "int64",
    "bool",
    "float8_e4m3fn",
)
REDUCE_OPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR")
FEW_DTYPES = ("float32", "bfloat16", "complex64", "int64", "bool")
"""Dtypes that cover the paths of the operations that do not reduce."""


def input_of(rank, dtype, count=6):
    """Return small whole numbers, whose sums and means every dtype represents."""
    return (2 * torch.arange(count) + 4 * rank).to(getattr(torch, dtype))


def plain(value):
    """Return a result as lists, which compare by value."""
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), value.to(torch.complex128).tolist()]
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    return value


def in_place(call, value, *args, **keywords):
    """Return the first argument of a call as the call has changed it."""
    call(value, *args, **keywords)
    return value


def reductions(rank, group, dtype, op):
    """Return the calls of all operations that reduce, by name."""
    kind = getattr(dist.ReduceOp, op)

    def x(count=6):
        return input_of(rank, dtype, count)

    def empty(count=3):
        return torch.zeros(count).to(getattr(torch, dtype))

    single = getattr(dist, "reduce_scatter_single", dist.reduce_scatter_tensor)
    return {
        "all_reduce": lambda: in_place(dist.all_reduce, x(), kind, group),
        "all_reduce_coalesced": lambda: in_place(
            dist.all_reduce_coalesced, [x(3), x(4)], kind, group
        ),
        # Only the root's result is defined.
        "reduce": lambda: in_place(dist.reduce, x(), 1, kind, group)[: 6 * rank],
        "reduce_scatter": lambda: in_place(dist.reduce_scatter, empty(), [x(3), x(3)], kind, group),
        "reduce_scatter_tensor": lambda: in_place(single, empty(), x(), kind, group),
    }


def forms(rank, group):
    """Return calls in every form of an all-reduce's arguments, by name."""
    ops, five = dist.ReduceOp, datetime.timedelta(seconds=5)

    def x(count=6):
        return input_of(rank, "float32", count)

    def call(tensors, *args, **keywords):
        group.allreduce(tensors, *args, **keywords).wait()
        return tensors

    def options(op, timeout=five):
        made = dist.AllreduceOptions()
        made.reduceOp, made.timeout = op, timeout
        return made

    def unchanged():
        made = options(ops.AVG)
        call([x()], made)
        return made.reduceOp == ops.AVG

    return {
        "tensor": lambda: call(x()),
        "list": lambda: call([x()]),
        "tensor, op": lambda: call(x(), ops.AVG),
        "tensor, op, timeout": lambda: call(x(), ops.MAX, five),
        "op=": lambda: call(x(), op=ops.MAX),
        "timeout=": lambda: call([x()], op=ops.SUM, timeout=five),
        "ReduceOp": lambda: call(x(), ops(ops.AVG)),
        "options": lambda: call([x()], options(ops.AVG)),
        "options=": lambda: call([x()], opts=options(ops.SUM)),
        "options are unchanged": unchanged,
        "integers": lambda: call(input_of(rank, "int64"), ops.MAX),
        "no tensor": lambda: call([]),
        "two tensors": lambda: call([x(), x()]),
        "two sizes": lambda: call([x(), x(3)]),
        "not a tensor": lambda: call(3),
        "empty": lambda: call(x(0)),
        "empty mean": lambda: call(x(0), ops.AVG),
        "scalar": lambda: call(torch.tensor(float(rank))),
        "of columns": lambda: call(x().view(2, 3).t()),
        "mean of columns": lambda: call(x().view(2, 3).t(), ops.AVG),
        "strided": lambda: call(x(12)[::2]),
        "expanded": lambda: call(x(1).expand(6)),
        "part": lambda: call(x(12)[3:9]),
        "requires grad": lambda: in_place(dist.all_reduce, x().requires_grad_(), group=group),
        "mean requires grad": lambda: in_place(
            dist.all_reduce, x(3).double().requires_grad_(), ops.AVG, group
        ),
        "sparse": lambda: in_place(dist.all_reduce, x().to_sparse(), group=group).to_dense(),
    }


def works(rank, group):
    """Return calls of the methods of an all-reduce's handle, by name."""
    found = {}
    for name, count in (("work", 6), ("empty work", 0)):
        for op in ("SUM", "AVG"):
            tensor = input_of(rank, "float32", count)
            kind = getattr(dist.ReduceOp, op)
            work = dist.all_reduce(tensor, kind, group, async_op=True)
            work.wait(datetime.timedelta(seconds=5))
            calls = {
                "wait": work.wait,
                "wait(timeout)": lambda work=work: work.wait(datetime.timedelta(seconds=5)),
                "wait(timeout=)": lambda work=work: work.wait(
                    timeout=datetime.timedelta(seconds=5)
                ),
                "get_future": lambda work=work: work.get_future().value(),
                "future's wait": lambda work=work: work.get_future().wait(),
                "is a Work": lambda work=work: isinstance(work, dist.Work),
            } | {
                method: getattr(work, method)
                for method in (
                    "is_completed",
                    "is_success",
                    "exception",
                    "result",
                    "source_rank",
                    "_source_rank",
                    "synchronize",
                    "get_future_result",
                    "block_current_stream",
                )
                if hasattr(work, method)
            }
            found |= {f"{name} {op} {method}": call for method, call in calls.items()}
    return found


def exchanges(rank, group, dtype):
    """Return calls of all operations that do not reduce, by name."""

    def x(count=6):
        return input_of(rank, dtype, count)

    def empty(count=6):
        return torch.zeros(count).to(getattr(torch, dtype))

    def columns():
        return x().view(2, 3).t()

    def gather(tensor, makes, dst=0):
        into = [makes() for _ in range(2)] if rank == dst else None
        dist.gather(tensor, into, dst=dst, group=group)
        return into

    def scatter(into, tensor, src=0):
        dist.scatter(into, [tensor, tensor + tensor] if rank == src else None, src, group)
        return into

    def receive(call, sent, *source):
        if rank:
            dist.send(sent, 0, group)
            return None
        into = empty()
        return call(into, *source, group=group), into

    def both_ways():
        into = empty()
        ops = [dist.P2POp(dist.isend, x(), 1 - rank, group)]
        ops.append(dist.P2POp(dist.irecv, into, 1 - rank, group))
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return into

    def tagged():
        if rank:
            dist.send(x(), 0, group, tag=1)
            return None
        return in_place(dist.recv, empty(), 1, group, tag=1)

    def waits(call, *args, **keywords):
        work = call(*args, async_op=True, **keywords)
        return work.wait(datetime.timedelta(seconds=5)), work.is_completed(), args[0]

    gather_single = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    return {
        "all_gather": lambda: in_place(dist.all_gather, [empty(), empty()], x(), group),
        "all_gather, empty": lambda: in_place(dist.all_gather, [empty(0), empty(0)], x(0), group),
        "all_gather, async": lambda: waits(dist.all_gather, [empty(), empty()], x(), group=group),
        "all_gather, columns": lambda: in_place(
            dist.all_gather, [columns(), columns()], columns(), group
        ),
        "all_gather, too few": lambda: in_place(dist.all_gather, [empty()], x(), group),
        "all_gather_single": lambda: in_place(gather_single, empty(12), x(), group),
        "all_gather_coalesced": lambda: in_place(
            dist.all_gather_coalesced,
            [[empty(), empty(3)], [empty(), empty(3)]],
            [x(), x(3)],
            group,
        ),
        "_allgather_base": lambda: in_place(
            lambda out: group._allgather_base(out, x()).wait(), empty(12)
        ),
        "all_to_all": lambda: in_place(dist.all_to_all, [empty(3), empty(3)], [x(3), x(3)], group),
        "all_to_all_single": lambda: in_place(dist.all_to_all_single, empty(), x(), group=group),
        "all_to_all_single, uneven": lambda: in_place(
            dist.all_to_all_single,
            empty(2 * (2 + 2 * rank)),
            x(),
            [2 + 2 * rank] * 2,
            [2, 4],
            group,
        ),
        "barrier": lambda: dist.barrier(group),
        "barrier, async": lambda: dist.barrier(group, async_op=True).wait(),
        "barrier, options": lambda: group.barrier(dist.BarrierOptions()).wait(),
        "barrier, timeout": lambda: group.barrier(timeout=datetime.timedelta(seconds=5)).wait(),
        "monitored_barrier": lambda: group.monitored_barrier(datetime.timedelta(seconds=5)),
        "broadcast": lambda: in_place(dist.broadcast, x(), 1, group),
        "broadcast, empty": lambda: in_place(dist.broadcast, x(0), 1, group),
        "broadcast, columns": lambda: in_place(dist.broadcast, columns(), 1, group),
        "broadcast, async": lambda: waits(dist.broadcast, x(), 0, group=group),
        "broadcast, method": lambda: in_place(lambda t: group.broadcast(t, 1).wait(), x()),
        "gather": lambda: gather(x(), empty),
        "gather to 1": lambda: gather(x(), empty, 1),
        "gather, empty": lambda: gather(x(0), lambda: empty(0)),
        "gather, columns": lambda: gather(columns(), columns),
        "scatter": lambda: scatter(empty(), x()),
        "scatter from 1": lambda: scatter(empty(), x(), 1),
        "scatter, empty": lambda: scatter(empty(0), x(0)),
        "scatter, columns": lambda: scatter(columns(), columns()),
        "recv": lambda: receive(dist.recv, x(), 1),
        "recv from any": lambda: receive(dist.recv, x()),
        "irecv": lambda: receive(lambda *a, **k: dist.irecv(*a, **k).wait(), x(), 1),
        "irecv from any": lambda: receive(lambda *a, **k: dist.irecv(*a, **k).wait(), x()),
        "tag": tagged,
        "isend and irecv": both_ways,
    }


def objects(rank, group):
    """Return calls of the collectives of Python objects, by name."""

    def gathered():
        into = [None, None] if rank == 0 else None
        dist.gather_object({"rank": rank}, into, dst=0, group=group)
        return into

    def scattered():
        into = [None]
        dist.scatter_object_list(into, ["a", {"b": 1}] if rank == 0 else None, 0, group)
        return into

    def sent():
        if rank:
            dist.send_object_list(["a", 3], 0, group)
            return None
        return in_place(dist.recv_object_list, [None, None], 1, group)

    return {
        "all_gather_object": lambda: in_place(
            dist.all_gather_object, [None, None], ["a" * rank, rank], group
        ),
        "gather_object": gathered,
        "scatter_object_list": scattered,
        "broadcast_object_list": lambda: in_place(
            dist.broadcast_object_list, [rank, "a" * rank], 1, group
        ),
        "recv_object_list": sent,
    }


def outcomes(rank, group):
    """Return the result of each call, or the type of its error."""
    calls = forms(rank, group) | works(rank, group) | objects(rank, group)
    for dtype in DTYPES:
        for op in REDUCE_OPS:
            for name, call in reductions(rank, group, dtype, op).items():
                calls[f"{name} {dtype} {op}"] = call
    for dtype in FEW_DTYPES:
        for name, call in exchanges(rank, group, dtype).items():
            calls[f"{name} {dtype}"] = call
    found = {}
    for name, call in calls.items():
        try:
            found[name] = plain(call())
        except Exception as error:
            found[name] = type(error).__name__
    return found


def both(rank):
    """Return the outcomes on Gloo and on the backend, which compresses all that it can."""
    import hipress.torch  # noqa: F401

    warnings.simplefilter("ignore")
    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="lossless")
    timeout = datetime.timedelta(seconds=10)
    gloo = dist.new_group(backend="gloo", timeout=timeout)
    ours = dist.new_group(backend="hipress", timeout=timeout)
    found = outcomes(rank, gloo), outcomes(rank, ours)
    dist.barrier()  # rank 0 runs the store
    return *found, ours.stats().compressed


is_comparable = pytest.mark.skipif(
    tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 13),
    reason="Gloo and handles of older versions of PyTorch support fewer calls",
)

INTEGER_MEANS = {f"all_reduce {dtype} AVG" for dtype in ("int8", "uint8", "int32", "int64")}
"""Calls that Gloo refuses and the backend supports; there are no other ones."""


@is_comparable
def test_every_call_has_the_outcome_that_it_has_on_gloo():
    for rank, (gloo, ours, compressed) in enumerate(returned(run_ranks(both, 2, timeout=100))):
        assert compressed > 400  # bytes
        assert sum(not isinstance(value, str) for value in gloo.values()) > 400
        differing = {name for name in gloo if gloo[name] != ours[name]}
        assert differing == INTEGER_MEANS, {n: (gloo[n], ours[n]) for n in differing}
        for name in INTEGER_MEANS:
            assert gloo[name] == "RuntimeError"
            assert ours[name][1] == [2 * i + 2 for i in range(6)], (rank, name)


def late(rank):
    """Return the state of an all-reduce on rank 0 before and after rank 1 takes part."""
    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="0", HIPRESS_COMPRESSION="lossless")
    seen = []
    for backend in ("gloo", "hipress"):
        group = dist.new_group(backend=backend)
        dist.all_reduce(torch.zeros(6), group=group)  # connects
        tensor = torch.ones(6)
        if rank == 0:
            work = dist.all_reduce(tensor, group=group, async_op=True)
            found = [work.is_completed(), work.is_success(), work.exception()]
            for call in (work.result, lambda work=work: work.wait(datetime.timedelta(0, 0.1))):
                try:
                    found.append(call())
                except RuntimeError as error:
                    found.append(str(error))
            dist.barrier()
            found += [work.wait(datetime.timedelta(seconds=10)), plain(work.result())]
            seen.append(found)
        else:
            dist.barrier()
            dist.all_reduce(tensor, group=group)
    return seen


@is_comparable
def test_handle_of_an_unfinished_all_reduce_behaves_as_gloos():
    gloo, ours = returned(run_ranks(late, 2))[0]
    assert ours == gloo
    assert "Operation timed out!" in gloo


def means(rank):
    """Return the results of small means where a parameter may only be changed without gradients,
    and of float16 numbers whose sum overflows."""
    import hipress.torch  # noqa: F401

    group, results = dist.new_group(backend="hipress"), {}
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            weight = torch.nn.Parameter(input_of(rank, "float32"))
            counts = input_of(rank, "int64")
            for name, tensor in (("weight", weight), ("counts", counts)):
                dist.all_reduce(tensor, dist.ReduceOp.AVG, group)
                results[f"{name}, {mode.__name__}"] = tensor.tolist()
    weight = torch.nn.Parameter(input_of(rank, "float32"))
    with torch.no_grad():
        dist.all_reduce(weight, dist.ReduceOp.AVG, group)
    large = torch.full((2,), 40000.0).half()
    work = dist.all_reduce(large, dist.ReduceOp.AVG, group, async_op=True)
    work.wait(datetime.timedelta(seconds=10))
    return results | {"weight": weight.tolist()}, large.tolist()


def test_small_means_follow_the_callers_grad_mode_and_do_not_overflow():
    for results, large in returned(run_ranks(means, 2)):
        assert len(results) == 5
        assert all(values == [2 * i + 2 for i in range(6)] for values in results.values())
        assert large == [40000.0, 40000.0]


def barrier_after_all_reduces(rank):
    import hipress.torch  # noqa: F401

    os.environ.update(HIPRESS_MIN_SIZE="0")
    group = dist.new_group(backend="hipress")
    done = []
    for _ in range(20):
        works = [dist.all_reduce(torch.ones(200_000), group=group, async_op=True) for _ in range(3)]
        dist.barrier(group)
        done += [work.is_completed() for work in works]
    return done


def test_barrier_waits_for_the_all_reduces_before_it():
    for done in returned(run_ranks(barrier_after_all_reduces, 2)):
        assert all(done)


def gathers_and_scatters(rank):
    """Run operations without pauses, while Gloo frees the tensors of the previous ones."""
    import hipress.torch  # noqa: F401

    dist.init_process_group("hipress", timeout=datetime.timedelta(seconds=10))
    for i in range(1000):
        tensor, into = torch.full((2000,), float(i)), torch.zeros(2000)
        parts = [torch.zeros(2000), torch.zeros(2000)] if rank == 0 else None
        dist.gather(tensor, parts, dst=0)
        dist.scatter(into, parts, src=0)
        assert into[-1] == i
    dist.barrier()
    return "done"


def test_2000_gathers_and_scatters_do_not_deadlock():
    assert run_ranks(gathers_and_scatters, 2, join=False, timeout=40) == ["done", "done"]


def test_every_operation_of_the_installed_pytorch_is_overridden():
    """Compare with PyTorch's stub, which the backend does not read."""
    from hipress.torch.integrations.process_group import HipressProcessGroup

    stub = pathlib.Path(torch.__file__).parent / "_C" / "_distributed_c10d.pyi"
    tree = ast.parse(stub.read_text())
    (group,) = (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ProcessGroup")
    operations = {
        each.name
        for each in group.body
        if isinstance(each, ast.FunctionDef) and "Work" in ast.unparse(each.returns or ast.Name(""))
    }
    operations = {name for name in operations if hasattr(dist.ProcessGroup, name)}
    assert {"gather", "scatter", "reduce", "alltoall", "recv_anysource"} <= operations
    missing = {
        name for name in operations if not inspect.isfunction(getattr(HipressProcessGroup, name))
    }
    assert not missing
