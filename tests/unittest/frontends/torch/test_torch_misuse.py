"""Calls at the wrong time, on the wrong rank or with the wrong model end in one clear sentence."""

import pytest

from harness.torch_ranks import returned, run_ranks, torch


def calls_of(model, **options):
    """Return the calls that need a process group, by the name in their errors."""
    import hipress.torch

    def sgd():
        return torch.optim.SGD(model.parameters(), lr=0.1)

    named = list(model.named_parameters())
    return {
        "DistributedOptimizer": lambda: hipress.torch.DistributedOptimizer(sgd(), named, **options),
        "DeMo": lambda: hipress.torch.DeMo(named, **options),
        "DiLoCo": lambda: hipress.torch.DiLoCo(model, sgd(), sgd(), 4, **options),
        "LocalSGD": lambda: hipress.torch.LocalSGD(model, sgd(), 4, **options),
        "broadcast_parameters()": lambda: hipress.torch.broadcast_parameters(
            model.state_dict(), 0, **options
        ),
        "broadcast_optimizer_state()": lambda: hipress.torch.broadcast_optimizer_state(
            sgd(), 0, **options
        ),
    }


def errors_of(calls):
    said = {}
    for who, call in calls.items():
        with pytest.raises((RuntimeError, TypeError, ValueError)) as caught:
            call()
        said[who] = str(caught.value)
    return said


def outside_of_group(rank):
    """Return the errors before init_process_group(), on a rank outside the group, and after
    destroy_process_group()."""
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    model = torch.nn.Linear(4, 4)
    before = errors_of(calls_of(model))
    dist.init_process_group("gloo")
    first = dist.new_group([0])
    sharded = fully_shard(torch.nn.Linear(4, 4), mesh=init_device_mesh("cpu", (2,)))
    outside = {}
    if rank == 1:
        calls = calls_of(model, group=first)
        weight = model.weight.detach().clone()
        for name in [name for name in calls if name.startswith("broadcast")]:
            assert calls.pop(name)() is None  # as PyTorch's own broadcast()
        assert torch.equal(model.weight, weight)
        calls["compress_fsdp()"] = lambda: hipress.torch.compress_fsdp(
            sharded, replicate_group=first
        )
        outside = errors_of(calls)
    wrapped = DistributedDataParallel(model)
    dist.barrier()
    dist.destroy_process_group()
    after = errors_of({**calls_of(model), "compress()": lambda: hipress.torch.compress(wrapped)})
    return before, outside, after


def test_calls_without_a_process_group_say_so():
    from torch.distributed.fsdp import FSDPModule

    found = returned(run_ranks(outside_of_group, 2, join=False))
    for before, _, after in found:
        for who, sentence in {**before, **after}.items():
            assert sentence == (
                f"{who} needs a process group: call torch.distributed.init_process_group() first"
            )
    outside = found[1][1]
    assert len(outside) == len(found[1][0]) - 1
    if not hasattr(FSDPModule, "set_custom_reduce_scatter"):  # before PyTorch 2.9
        del outside["compress_fsdp()"]
    for who, sentence in outside.items():
        assert sentence.startswith(f"rank 1 is not in the process group that {who} was given")


def wrong_op(rank):
    """Return the errors for values of op that are not texts, on rank 1 alone."""
    import torch.distributed as dist

    import hipress.torch

    model, said = torch.nn.Linear(4, 4), []
    for op in (1, None, dist.ReduceOp.SUM):
        with pytest.raises(ValueError) as caught:
            hipress.torch.DistributedOptimizer(
                torch.optim.SGD(model.parameters(), lr=0.1),
                model.named_parameters(),
                op=op if rank else "average",
            )
        said.append(str(caught.value))
    return said


def test_op_that_is_not_text_is_refused_on_all_ranks():
    for said in returned(run_ranks(wrong_op, 2)):
        assert len(said) == 3
        assert all("op must be 'average' or 'sum'" in sentence for sentence in said), said


@pytest.mark.parametrize("name", ["compress", "compress_fsdp"])
def test_compression_of_a_list_of_layers_is_refused(name):
    import hipress.torch

    with pytest.raises(TypeError, match=r"compress.*\(\) takes a .*, not list"):
        getattr(hipress.torch, name)([torch.nn.Linear(4, 4)])


def replicated(rank):
    """Return the errors for models that replicate() has changed."""
    import importlib.util

    from torch.distributed._composable import replicate

    import hipress.torch

    kinds = [replicate]
    if importlib.util.find_spec("torch.distributed._composable.replicate_with_fsdp"):
        from torch.distributed._composable.replicate_with_fsdp import replicate as with_fsdp

        kinds.append(with_fsdp)
    said = []
    for kind in kinds:
        model = kind(torch.nn.Linear(4, 4))
        calls = (hipress.torch.compress, hipress.torch.compress_fsdp)
        for call in calls if kind is replicate else calls[:1]:  # FSDP2's may be compressed
            with pytest.raises(TypeError) as caught:
                call(model, "onebit")
            said.append(str(caught.value))
    if len(kinds) == 1:
        return said, {}
    calls = calls_of(model)
    return said, errors_of({who: calls[who] for who in calls if "broadcast" not in who})


def test_replicated_models_are_told_to_use_ddp():
    ((said, others),) = returned(run_ranks(replicated, 1))
    for sentence in said:
        assert "replicate()" in sentence and "wrap the model in DistributedDataParallel" in sentence
    assert all("replicate() " in sentence for sentence in others.values()), others


def counted(rank):
    """Return the statistics of type "auto" where nothing can be chosen, and of type "none"."""
    import copy
    import gc
    import io

    from torch.nn.parallel import DistributedDataParallel

    import hipress.torch

    model = DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(8, 8) for _ in range(9)]))
    compression = hipress.torch.compress(model)
    model(torch.ones(2, 8)).sum().backward()
    with model.no_sync():
        model(torch.ones(2, 8)).sum().backward()
    model(torch.ones(2, 8)).sum().backward()
    copy.deepcopy(model)
    torch.save(model, io.BytesIO())
    network = model.module
    assert any(p._post_accumulate_grad_hooks for p in network.parameters())
    del model
    gc.collect()
    assert not any(p._post_accumulate_grad_hooks for p in network.parameters())
    plain = torch.nn.Linear(8, 8)
    optimizer = hipress.torch.DistributedOptimizer(
        torch.optim.SGD(plain.parameters(), lr=0.1), plain.named_parameters(), min_size=1
    )
    plain(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    return compression.stats(), optimizer.compression.stats()


def test_stats_count_uncompressed_gradients_in_short_text():
    for auto, none in returned(run_ranks(counted, 2)):
        size = 2 * 4 * 9 * (64 + 8)
        assert (auto.compressed, auto.uncompressed) == (0, size)
        assert str(auto).splitlines() == [
            f"0 bytes of gradients went compressed, {size} not",
            f"  0.weight, 0.bias, 1.weight and 15 more: {size} not, uncompressed, by auto",
        ]
        assert (none.compressed, none.uncompressed) == (0, 4 * 72)
        assert str(none).splitlines()[1] == "  bias, weight: 288 not, by type none"


def wrapper_left_out(rank):
    """Return the errors of the wrapped optimizer's own step(), and warnings of a lost wrapper."""
    import logging

    import hipress.torch

    said, warned = [], []
    logging.getLogger("hipress").addFilter(lambda record: warned.append(record.getMessage()))
    model = torch.nn.Linear(8, 4)
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer = hipress.torch.DistributedOptimizer(inner, model.named_parameters())
    model(torch.full((2, 8), float(rank))).sum().backward()
    with pytest.raises(RuntimeError) as caught:
        inner.step()
    said.append(str(caught.value))
    optimizer.synchronize()
    inner.step()
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    del optimizer
    said += warned
    hipress.torch.DistributedOptimizer(inner, model.named_parameters())
    return [*said, *warned], model.weight.detach().numpy().tobytes()


def test_steps_of_wrapped_optimizer_are_refused_before_averaging():
    (first, weights), (second, others) = returned(run_ranks(wrapper_left_out, 2))
    assert weights == others and first == second and len(first) == 2
    assert "call step() of the DistributedOptimizer" in first[0]
    assert "a DistributedOptimizer was dropped before its first step" in first[1]
