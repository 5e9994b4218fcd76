"""OneBitAdam and OneBitLamb: the papers' formulas, DeepSpeed's arguments and its state names."""

import copy
import logging
import sys
import types

import numpy as np
import pytest

from harness.torch_ranks import returned, run_ranks, torch
from test_torch_ddp import MIN_SIZE, expect, loss_of, network
from test_torch_momentum import local_gradients

FREEZE, STEPS = 3, 7
BETAS = (0.9, 0.99)
ADAM_NAMES = {"step", "exp_avg", "exp_avg_sq"}
LAMB_NAMES = ADAM_NAMES | {"exp_avg_sq_fresh", "lamb_coeff_freeze", "last_factor"}


def make(kind, model, **options):
    from hipress.torch import onebit

    options = {"lr": 0.01, "betas": BETAS, "weight_decay": 0.1, **options}
    options.setdefault("freeze_step", FREEZE)
    return getattr(onebit, kind)(model.parameters(), min_size=MIN_SIZE, **options)


def wrap(model, **options):
    return torch.nn.parallel.DistributedDataParallel(model, **options)


def train(model, optimizer, rank, first, last):
    for step in range(first, last):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
    return [p.detach().numpy().tobytes() for p in model.parameters()]


class NumpyAdam:
    """1-bit Adam of one parameter in NumPy (arXiv:2102.02888, algorithm 1, without Adam's bias
    correction)."""

    def __init__(self, weights, lr=0.01, decay=0.1, eps=1e-8):
        self.w, self.m, self.v = weights.copy(), np.zeros_like(weights), np.zeros_like(weights)
        self.lr, self.decay, self.eps = lr, decay, eps

    def step(self, gradient, momentum):
        """Step with a gradient of the warm-up, or else with the exchanged momentum."""
        before = self.m
        if momentum is None:
            self.m = BETAS[0] * self.m + (1 - BETAS[0]) * gradient
            self.v = BETAS[1] * self.v + (1 - BETAS[1]) * gradient**2
            self.warm_up()
        else:
            self.m = momentum
            self.frozen(before)

    def update(self):
        return self.m / (np.sqrt(self.v) + self.eps) * (self.v > 0)

    def warm_up(self):
        self.w = self.w - self.lr * (self.update() + self.decay * self.w)

    def frozen(self, _):
        self.warm_up()


class NumpyLamb(NumpyAdam):
    """1-bit LAMB of one parameter in NumPy (arXiv:2104.06069, algorithm 1)."""

    average, factor = 0.0, 1.0

    def warm_up(self):
        update = self.update() + self.decay * self.w
        norm = np.linalg.norm(update)
        coefficient = np.clip(np.linalg.norm(self.w) / norm, 0.01, 10) if norm else 1.0
        if coefficient != 1:
            self.average = 0.9 * self.average + 0.1 * coefficient
        self.fresh = self.v
        self.w = self.w - self.lr * coefficient * update

    def frozen(self, before):
        gradient = (self.m - BETAS[0] * before) / (1 - BETAS[0])
        self.fresh = BETAS[1] * self.fresh + (1 - BETAS[1]) * gradient**2
        update = self.update() + self.decay * self.w
        share = min(1.0, np.linalg.norm(self.update()) / np.linalg.norm(update))
        ratio = (np.sqrt(self.v) + self.eps) / (np.sqrt(self.fresh) + self.eps)
        factor = np.clip(ratio.max() * share + 1 - share, 0.5, 4)
        self.factor = np.clip(factor, 0.9 * self.factor, 1.1 * self.factor)
        self.w = self.w - self.lr * self.average * self.factor * update


def follows_formulas(rank, kind, world_size):
    """Train, and compare each step with NumPy's, which exchanges by the codec's reference."""
    from hipress.topology.graph import worker

    model = network()
    plain = copy.deepcopy(model)
    optimizer = make(kind, model)
    ddp = wrap(model)
    named = list(model.named_parameters())
    sizes = {name: p.numel() for name, p in named}
    references = expect("onebit", {}, "ps", sizes, world_size)
    cls = {"OneBitAdam": NumpyAdam, "OneBitLamb": NumpyLamb}[kind]
    numpy = {name: cls(p.detach().numpy().flatten().astype(np.float64)) for name, p in named}
    for step in range(STEPS):
        plain.load_state_dict(model.state_dict())
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        optimizer.step()
        local = local_gradients(plain, world_size, step)
        for name, parameter in named:
            ours, gradients = numpy[name], [g[name].numpy() for g in local]
            gradient, momentum = sum(gradients) / world_size, None
            if step >= FREEZE and name in references:
                last = BETAS[0] * ours.m / (1 - BETAS[0])
                given = {worker(r): (last + g).astype(np.float32) for r, g in enumerate(gradients)}
                momentum = (1 - BETAS[0]) * references[name].step(given)[worker(rank)]
            elif step >= FREEZE:
                momentum = BETAS[0] * ours.m + (1 - BETAS[0]) * gradient
            ours.step(gradient, momentum)
            found = parameter.detach().numpy().flatten()
            np.testing.assert_allclose(
                found, ours.w, rtol=2e-3, atol=2e-5, err_msg=f"{step} {name}"
            )
    names = LAMB_NAMES if kind == "OneBitLamb" else ADAM_NAMES
    assert all(set(state) == names for state in optimizer.state.values())
    assert optimizer.compression.stats().compressed > 0
    return [p.detach().numpy().tobytes() for _, p in named]


@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_training_follows_the_papers_formulas(kind):
    results = returned(run_ranks(follows_formulas, 2, kind, 2))
    assert results[0] == results[1]


def resumes(rank, kind):
    """Resume in new objects, and compare bits with training that was not interrupted."""
    for at in (FREEZE - 1, FREEZE, FREEZE + 2):
        model = network()
        optimizer = make(kind, model)
        ddp = wrap(model)
        train(ddp, optimizer, rank, 0, at)
        saved = copy.deepcopy((model.state_dict(), optimizer.state_dict()))
        errors = optimizer.compression.state_dict()
        expected = train(ddp, optimizer, rank, at, STEPS)
        for compression_state in (errors, None):
            model = network(seed=1)
            model.load_state_dict(saved[0])
            optimizer = make(kind, model)
            optimizer.load_state_dict(copy.deepcopy(saved[1]), compression_state)
            found = train(wrap(model), optimizer, rank, at, STEPS)
            assert optimizer.compression.step == STEPS
            same = compression_state is not None or at <= FREEZE  # then there are no errors
            assert (found == expected) == same, at
    with pytest.raises(RuntimeError, match="before the first forward pass only"):
        optimizer.load_state_dict(saved[1])


def resumes_by_pytorch(rank):
    """Resume by PyTorch's functions for state dicts, which make a step to create the state."""
    from torch.distributed.checkpoint import state_dict as functions

    model = network()
    optimizer = make("OneBitAdam", model)
    ddp = wrap(model)
    train(ddp, optimizer, rank, 0, FREEZE)
    saved = copy.deepcopy(functions.get_state_dict(ddp, optimizer))
    expected = train(ddp, optimizer, rank, FREEZE, STEPS)
    model = network(seed=1)
    optimizer = make("OneBitAdam", model)
    ddp = wrap(model)
    functions.set_state_dict(ddp, optimizer, model_state_dict=saved[0], optim_state_dict=saved[1])
    return train(ddp, optimizer, rank, FREEZE, STEPS) == expected


def test_training_resumes_by_functions_of_pytorch():
    assert returned(run_ranks(resumes_by_pytorch, 2)) == [True, True]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_training_resumes_with_the_same_bits(kind):
    returned(run_ranks(resumes, 2, kind))


def deepspeed_state(model, kind, step):
    """Return a state dict with the entries that DeepSpeed 0.19.6 writes on rank 0."""
    generator = torch.Generator().manual_seed(step)
    states = {}
    for number, parameter in enumerate(model.parameters()):
        squares = torch.rand(parameter.shape, generator=generator) + 0.1
        states[number] = {
            "step": step,
            "exp_avg": torch.randn(parameter.shape, generator=generator),
            "exp_avg_sq": squares,
            "worker_error": torch.ones(parameter.numel() + 3),
            "server_error": torch.ones(7),
        }
        if kind == "OneBitLamb":
            more = {"lamb_coeff_freeze": 0.5, "last_factor": 1.1, "scaling_coeff": 2.0}
            states[number].update(exp_avg_sq_fresh=squares.clone(), **more)
    group = {"lr": 0.02, "bias_correction": True, "betas": BETAS, "eps": 1e-6}
    group.update(weight_decay=0.0, max_grad_norm=0.0, exp_avg_mask=torch.zeros(1))
    if kind == "OneBitLamb":
        group.update(max_coeff=10.0, min_coeff=0.01)
    return {"state": states, "param_groups": [{**group, "params": list(states)}]}


def continues(rank, kind, start):
    """Load a state of DeepSpeed and make a step. Return the step, and stats of the bytes sent."""
    model = network()
    optimizer = make(kind, model)
    state = deepspeed_state(model, kind, start)
    optimizer.load_state_dict(copy.deepcopy(state))
    assert optimizer.param_groups[0]["lr"] == 0.02
    assert "exp_avg_mask" not in optimizer.param_groups[0]
    ddp, plain = wrap(model), copy.deepcopy(model)
    gradients = local_gradients(plain, 2, start)
    train(ddp, optimizer, rank, start, start + 1)
    for (name, p), old in zip(model.named_parameters(), state["state"].values(), strict=True):
        new = optimizer.state[p]
        assert new["step"] == start + 1 and "worker_error" not in new
        assert torch.equal(new["exp_avg_sq"], old["exp_avg_sq"]) == (start >= FREEZE)
        mean = (gradients[0][name] + gradients[1][name]).view_as(p) / 2
        expected = BETAS[0] * old["exp_avg"] + (1 - BETAS[0]) * mean
        if start < FREEZE or p.numel() < MIN_SIZE:
            torch.testing.assert_close(new["exp_avg"], expected, rtol=1e-4, atol=1e-6)
        else:  # one bit keeps the sign and the mean size
            cosine = torch.nn.functional.cosine_similarity
            assert cosine(new["exp_avg"].flatten(), expected.flatten(), dim=0) > 0.6
    return optimizer.compression.stats().compressed > 0


@pytest.mark.parametrize("start", [FREEZE - 2, FREEZE + 2])
@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_checkpoint_of_deepspeed_continues(kind, start):
    assert returned(run_ranks(continues, 2, kind, start)) == [start >= FREEZE] * 2


def deepspeed_optimizer(kind, model, monkeypatch, **options):
    """Return DeepSpeed's optimizer as the only rank, which exchanges nothing."""
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    package = "deepspeed.runtime"
    module = pytest.importorskip(
        f"{package}.fp16.onebit.{'adam' if kind == 'OneBitAdam' else 'lamb'}",
        reason="needs DeepSpeed 0.19.6 or earlier",
    )
    backend = types.ModuleType(f"{package}.comm.compressed")
    backend.CompressedBackend = lambda mpu: types.SimpleNamespace(size=1)
    monkeypatch.setitem(sys.modules, backend.__name__, backend)
    monkeypatch.setattr("deepspeed.comm.is_initialized", lambda: True)
    monkeypatch.setattr("deepspeed.comm.get_rank", lambda: 0)
    engine = types.SimpleNamespace(mpu=None, local_rank=0, enable_backward_allreduce=True)
    cls = getattr(module, kind.replace("OneBit", "Onebit"))
    return cls(model.parameters(), engine, comm_backend_name="compressed", **options)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_steps_and_checkpoints_are_those_of_deepspeed(kind, monkeypatch):
    options = {"lr": 0.01, "betas": BETAS, "weight_decay": 0.1, "freeze_step": FREEZE}
    model, ours = single(kind, **options)
    other = copy.deepcopy(model)
    theirs = deepspeed_optimizer(kind, other, monkeypatch, **options)
    step_alone(other, theirs, 0)  # DeepSpeed's first step only allocates
    other.load_state_dict(model.state_dict())
    for step in range(1, 10):
        if step in (1, FREEZE, FREEZE + 2):  # load DeepSpeed's state in both stages
            ours = make(kind, model, **options)
            ours.load_state_dict(copy.deepcopy(theirs.state_dict()))
        step_alone(other, theirs, step)
        step_alone(model, ours, step)
        for mine, their in zip(model.parameters(), other.parameters(), strict=True):
            torch.testing.assert_close(mine, their, rtol=1e-5, atol=1e-6)
    assert set(ours.param_groups[0]) == set(theirs.param_groups[0])


def single(kind, **options):
    torch.manual_seed(0)
    model = torch.nn.Linear(40, 50)
    return model, make(kind, model, **options)


def step_alone(model, optimizer, step, zeros=0):
    generator = torch.Generator().manual_seed(step)
    for p in model.parameters():
        p.grad = torch.randn(p.shape, generator=generator)
        p.grad[:zeros] = 0
    optimizer.step()


@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_elements_without_second_moment_do_not_change(kind):
    model, optimizer = single(kind, weight_decay=0.0)
    before = model.weight.detach().clone()
    for step in range(STEPS):
        step_alone(model, optimizer, step, zeros=7 if step < FREEZE else 0)
    moved = (model.weight.detach() - before).abs()
    assert moved[:7].max() == 0 and moved[7:].min() > 0


def test_mask_stops_elements_after_the_warm_up():
    model, optimizer = single("OneBitAdam", weight_decay=0.0)
    mask = torch.ones(40)
    mask[5] = 0
    optimizer.param_groups[0]["params"] = [model.weight]
    optimizer.param_groups[0]["exp_avg_mask"] = mask
    for step in range(FREEZE):
        step_alone(model, optimizer, step)
    before = model.weight.detach().clone()
    for step in range(FREEZE, STEPS):
        step_alone(model, optimizer, step)
    moved = (model.weight.detach() - before).abs()
    assert moved[:, 5].max() == 0 and moved[:, 6].min() > 0


def groups(rank):
    """Train with a group whose gradients stay uncompressed, and try wrong uses."""
    from hipress.torch import onebit

    model = network()
    weights = [p for p in model.parameters() if p.numel() >= MIN_SIZE]
    others = [p for p in model.parameters() if p.numel() < MIN_SIZE]
    group = [{"params": weights, "non_freeze": True}, {"params": others}]
    optimizer = onebit.OneBitAdam(group, freeze_step=FREEZE, betas=BETAS, min_size=MIN_SIZE)
    train(wrap(model), optimizer, rank, 0, STEPS)
    assert optimizer.compression.stats().compressed == 0
    optimizer.param_groups[0]["betas"] = (0.8, 0.99)
    with pytest.raises(RuntimeError, match=r"beta 1 must stay 0\.9"):
        optimizer.step()
    alone = network()
    optimizer = make("OneBitAdam", alone)
    alone[0].weight.grad = torch.ones_like(alone[0].weight)
    with pytest.raises(RuntimeError, match="found no model: wrap it in DistributedDataParallel"):
        optimizer.step()
    two = torch.nn.ModuleList([network(), network()])
    optimizer = make("OneBitAdam", two)
    with pytest.raises(ValueError, match="parameters outside this DistributedDataParallel model"):
        loss_of(wrap(two[0]), rank, 0)


def test_groups_keep_their_options_and_wrong_uses_are_reported():
    returned(run_ranks(groups, 2))


def skips(rank):
    """Skip the last step of the warm-up, as a GradScaler may, and compare the momentum on all
    ranks and in the compression."""
    model = network()
    optimizer = make("OneBitAdam", model)
    ddp = wrap(model)
    for step in range(FREEZE + 1):
        optimizer.zero_grad()
        loss_of(ddp, rank, step).backward()
        if step == FREEZE - 1:
            assert not optimizer.compression.compresses_now
            before = optimizer.state[model[0].weight]["exp_avg"].clone()
            continue
        optimizer.step()
    state = optimizer.state[model[0].weight]
    expected = BETAS[0] * before + (1 - BETAS[0]) * model[0].weight.grad
    torch.testing.assert_close(state["exp_avg"], expected)
    _, kept = optimizer.compression.shared.state()["0.weight"]
    torch.testing.assert_close(kept * (1 - BETAS[0]), expected.flatten())


class Product(torch.nn.Module):
    """Product with a weight of 40 x 50 elements in memory, which may be viewed transposed."""

    def __init__(self, transposed):
        super().__init__()
        torch.manual_seed(0)
        weight, self.transposed = torch.randn(40, 50), transposed
        self.weight = torch.nn.Parameter(weight.t() if transposed else weight)

    def forward(self, x):
        return x @ (self.weight.t() if self.transposed else self.weight)


def transposes(rank):
    """Train with a transposed weight, whose momentum is shared in the order in memory."""
    found = []
    for transposed in (False, True):
        model = Product(transposed)
        optimizer = make("OneBitAdam", model)
        ddp = wrap(model)
        for step in range(STEPS):
            optimizer.zero_grad()
            generator = torch.Generator().manual_seed(10 * step + rank)
            ddp(torch.randn(8, 40, generator=generator)).square().mean().backward()
            optimizer.step()
        found.append(model.weight.detach().t() if transposed else model.weight.detach())
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)


def skipped_and_transposed(rank):
    skips(rank)
    transposes(rank)


def test_momentum_is_shared_after_a_skipped_step_and_in_memory_order():
    returned(run_ranks(skipped_and_transposed, 2))


@pytest.mark.parametrize("kind", ["OneBitAdam", "OneBitLamb"])
def test_arguments_are_those_of_deepspeed(kind, caplog):
    from hipress.torch import onebit

    parameters = [torch.nn.Parameter(torch.zeros(3))]
    options = {"cuda_aware": True, "comm_backend_name": "nccl", "bias_correction": True}
    with caplog.at_level(logging.WARNING, "hipress"):
        optimizer = getattr(onebit, kind)(parameters, None, 0.1, 10, **options)
    assert f"{kind} ignores cuda_aware and comm_backend_name" in caplog.text
    assert (optimizer.param_groups[0]["lr"], optimizer.freeze_step) == (0.1, 10)
    for wrong, sentence in (
        ({"amsgrad": True}, "leave amsgrad out"),
        ({"freeze_step": 0}, "freeze_step must be a whole number from 1 on"),
        ({"betas": (1.0, 0.9)}, "beta 1 must be in"),
        ({"eps": -1.0}, "eps must be 0 or more"),
    ):
        with pytest.raises(ValueError, match=sentence):
            getattr(onebit, kind)(parameters, **wrong)
    with pytest.raises(TypeError, match="use its state_dict"):
        copy.deepcopy(optimizer)
