"""Features of FSDP2 with each gather of weights, compared with uncompressed FSDP2."""

import pytest

from harness.torch_ranks import returned, run_ranks, torch

fsdp = pytest.importorskip("torch.distributed.fsdp", reason="needs torch")
if not hasattr(fsdp.FSDPModule, "set_custom_all_gather"):
    pytest.skip(
        f"needs FSDPModule.set_custom_all_gather, which PyTorch {torch.__version__} has not",
        allow_module_level=True,
    )

WIDTH, RANKS, STEPS = 32, 4, 3
GATHERS = (None, "exact", "lossless", "blocks", "differences")


class Block(torch.nn.Module):
    def __init__(self, checkpoint=None):
        super().__init__()
        self.up, self.down = torch.nn.Linear(WIDTH, 2 * WIDTH + 1), torch.nn.Linear(65, WIDTH)
        self.adapter = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self._checkpoint = checkpoint

    def forward(self, x):
        if self._checkpoint is None:
            return self._compute(x)
        from torch.utils.checkpoint import checkpoint

        return checkpoint(self._compute, x, use_reentrant=self._checkpoint == "reentrant")

    def _compute(self, x):
        up, down = self.up, self.down
        if up.weight.dtype != x.dtype:
            hidden = torch.relu(up(x.to(up.weight.dtype)))
            return x + down(hidden).to(x.dtype) + self.adapter(x)
        return x + down(torch.relu(up(x))) + self.adapter(x)


class Model(torch.nn.Module):
    def __init__(self, checkpoint=None, tied=False):
        super().__init__()
        self.first = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.blocks = torch.nn.ModuleList(Block(checkpoint) for _ in range(3))
        self.last = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        if tied:
            self.last.weight = self.first.weight

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return self.last(x)


def model_of(case):
    torch.manual_seed(3)
    model = Model(case.get("checkpoint"), case.get("tied", False))
    options = {}
    if "param" in case or "reduce" in case:
        options["mp_policy"] = fsdp.MixedPrecisionPolicy(
            param_dtype=case.get("param"), reduce_dtype=case.get("reduce")
        )
    if "reshard" in case:
        options["reshard_after_forward"] = case["reshard"]
    if case.get("lora"):
        model.requires_grad_(False)
        for block in model.blocks:
            if "frozen" in case:
                block.to(case["frozen"])
                block.adapter.to(torch.float32)
            block.adapter.requires_grad_(True)
    for block in model.blocks:
        fsdp.fully_shard(block, **options)
    fsdp.fully_shard(model, **options)
    if case.get("prefetch"):
        for block, later in zip(model.blocks, model.blocks[1:]):
            block.set_modules_to_forward_prefetch([later])
    return model


CASES = {
    "plain": {},
    "bfloat16 weights": {"param": torch.bfloat16, "reduce": torch.float32},
    "bfloat16 both": {"param": torch.bfloat16, "reduce": torch.bfloat16},
    "bfloat16 gradients": {"reduce": torch.bfloat16},
    "frozen and trained": {"lora": True},
    "two dtypes": {"lora": True, "frozen": torch.bfloat16},
    "float64 frozen": {"lora": True, "frozen": torch.float64},
    "tied": {"tied": True},
    "checkpoint": {"checkpoint": "plain"},
    "reentrant checkpoint": {"checkpoint": "reentrant"},
    "kept": {"reshard": False},
    "resharded": {"reshard": True},
    "resharded over 2": {"reshard": 2},
    "accumulated": {"accumulate": 3},
    "kept after backward passes": {"accumulate": 2, "kept": True},
    "prefetched": {"prefetch": True},
    "evaluated": {"evaluate": True},
    "compiled": {"compiled": True},
}
SOME = ["two dtypes", "resharded over 2"]


def batch(rank, step, part=0):
    generator = torch.Generator().manual_seed(1000 * step + 10 * part + rank)
    return torch.randn(4, WIDTH, generator=generator)


def observed(model):
    """Return copies of the weights that each module computes with, in the order of the gathers."""
    seen = []

    def hook(module, _):
        seen.extend(p.detach().clone() for p in module.parameters(recurse=False))

    for module in model.modules():
        module.register_forward_pre_hook(hook)
    return seen


def train(rank, case, compressed, gather):
    """Train a few steps; return the losses, the final weights, and the weights computed with."""
    import hipress.torch

    model = model_of(case)
    if compressed:
        hipress.torch.compress_fsdp(model, "none", gather=gather)
    compiled = case.get("compiled")
    seen = [] if compiled else observed(model)
    called = torch.compile(model, backend="aot_eager") if compiled else model
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=1e-2)
    losses, count = [], case.get("accumulate", 1)
    for step in range(STEPS):
        for part in range(count):
            model.set_requires_gradient_sync(part == count - 1)
            model.set_reshard_after_backward(part == count - 1 or not case.get("kept"))
            x = batch(rank, step, part).requires_grad_(case.get("checkpoint") == "reentrant")
            loss = (called(x).float() - x.roll(1, 1)).square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        if case.get("evaluate"):
            with torch.no_grad():
                losses.append(model(batch(rank, 0)).square().mean().item())
    model.reshard()  # a forward pass without gradients leaves the root's weights
    return losses, [p.full_tensor().detach() for p in model.parameters()], seen


def equal(first, second):
    return len(first) == len(second) and all(map(torch.equal, first, second))


def same_on_all_ranks(weights):
    import torch.distributed as dist

    flat = torch.cat([weight.view(torch.uint8).view(-1) for weight in weights])
    others = [torch.empty_like(flat) for _ in range(dist.get_world_size())]
    dist.all_gather(others, flat)
    return all(torch.equal(flat, other) for other in others)


def compare(rank, names):
    """Compare all gathers with PyTorch's, and with a job without compress_fsdp()."""
    for name in names:
        case = CASES[name]
        plain, *_ = train(rank, case, False, None)
        found = {gather: train(rank, case, True, gather) for gather in GATHERS}
        expected = found[None]
        for gather in ("exact", "lossless"):
            exact = found[gather]
            assert exact[0] == expected[0], (name, gather)
            assert equal(exact[1], expected[1]) and equal(exact[2], expected[2]), (name, gather)
        for gather, (losses, _, seen) in found.items():
            assert not seen or same_on_all_ranks(seen), (name, gather)
            for loss, other in zip(losses, plain, strict=True):
                assert abs(loss / other - 1) < 0.01, (name, gather)


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("names", [SOME, [name for name in CASES if name not in SOME]])
def test_features_work_with_each_gather(names):
    returned(run_ranks(compare, RANKS, names, timeout=240))


def frozen(rank):
    """Freeze all but adapters; then change frozen weights, and train them."""
    import hipress.torch

    model = model_of(CASES["frozen and trained"])
    seen = observed(model)
    compression = hipress.torch.compress_fsdp(model, "none", gather="differences")
    gathers, sizes = compression.gathers, []
    borrow = gathers.borrow
    gathers.borrow = lambda size, dtype: sizes.append(size) or borrow(size, dtype)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(number):
        seen.clear()
        sizes.clear()
        optimizer.zero_grad()
        model(batch(rank, number)).square().mean().backward()
        optimizer.step()

    step(0)
    assert not sizes  # the first exchange is exact, and in place
    for number in (1, 2):
        step(number)
        assert sizes == [WIDTH * WIDTH] * 3  # adapters alone
    block = model.blocks[1]
    with torch.no_grad():
        block.up.weight.copy_(block.up.weight * 1.7)
    exact = block.up.weight.full_tensor()
    step(3)
    assert any(torch.equal(exact, each) for each in seen)
    assert sizes == [WIDTH * WIDTH] * 2
    for parameter in model.blocks[2].parameters():
        parameter.requires_grad_(True)
    step(4)
    assert sizes == [WIDTH * WIDTH] * 3  # the other gradients were not reduced yet
    step(5)
    assert max(sizes) > 4 * WIDTH * WIDTH and same_on_all_ranks(seen)


def test_frozen_weights_travel_once_beside_trained_ones():
    returned(run_ranks(frozen, 2))


def buffers(rank):
    """Count the modules whose gradients wait for the network, and buffers after the exchanges."""
    import hipress.torch

    model = model_of({})
    compression = hipress.torch.compress_fsdp(model, "none", gather="differences")
    finish, held = compression.finish_bucket, []

    def observe(*args):
        finish(*args)
        held.append(len(compression._late))

    compression.finish_bucket = observe
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        loss = model(batch(rank, step)).square().mean()
        assert not compression.gathers._buffers
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert len(held) == 2 * 4 and max(held) <= 1


def test_few_modules_have_buffers_at_once():
    returned(run_ranks(buffers, 2))
