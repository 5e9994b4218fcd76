"""Values between the ranks of a process group: no pickles, and only from ranks with the secret."""

import contextlib
import math
import os

import pytest

from harness.torch_ranks import returned, run_ranks, torch

SECRET, OTHER_SECRET = "0123456789abcdef" * 2, "fedcba9876543210" * 2
NOT_PROVED = "could not prove that it knows this job's secret"


class Malicious:
    """Object that creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def exchange_at(place, attacker):
    """Call the function at one place in the package that exchanges values."""
    import torch.distributed as dist

    from hipress.torch import settings, start
    from hipress.torch.autotune import choice as hosts
    from hipress.torch.executors import engine
    from hipress.torch.integrations import broadcast, outer

    group = dist.group.WORLD
    model = torch.nn.Linear(2, 2).requires_grad_(False)
    if place == "start":
        start.start(lambda: settings.Settings("onebit"), group)
    elif place == "settings":
        settings.agree(group, {"compression": "type=onebit"}, "")
    elif place == "engine":
        engine.engine_of(group, 20)
    elif place == "hosts":
        hosts.ranks_per_host(group)
    elif place == "outer":
        outer.frozen_that_differ(model, group)
    elif place == "broadcast":
        optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), 0.1)
        broadcast.broadcast_optimizer_state(optimizer, root_rank=attacker)


def attack(rank, place, attacker, path, secrets):
    import torch.distributed as dist

    if secrets:
        os.environ["HIPRESS_SECRET"] = secrets[rank == attacker]
    if rank != attacker:
        exchange_at(place, attacker)
        return
    if place == "start":
        from hipress.torch.start import meet

        meet([0, 1], 20)
    with contextlib.suppress(ImportError, RuntimeError):
        from hipress.torch.authentication import authenticate

        authenticate()
    with contextlib.suppress(Exception):  # the victim sends no pickle
        if place == "broadcast":
            dist.broadcast_object_list([Malicious(path)], attacker)
        else:
            dist.all_gather_object([None, None], Malicious(path))


PLACES = ("start", "settings", "engine", "hosts", "outer", "broadcast")


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("place", PLACES)
def test_stranger_in_place_of_a_rank_is_refused(place, tmp_path):
    path = tmp_path / "created"
    texts = run_ranks(attack, 2, place, 1, str(path), [SECRET, OTHER_SECRET], timeout=30)
    assert not path.exists()
    assert texts[0].startswith(f"HipressError: rank 1 {NOT_PROVED}"), texts


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("place", PLACES)
def test_pickle_is_refused_without_a_secret(place, tmp_path):
    attacker, path = 1, tmp_path / "created"
    texts = run_ranks(attack, 2, place, attacker, str(path), None, timeout=30)
    assert not path.exists()
    assert f" of rank {attacker} are malformed" in texts[1 - attacker], texts


def secret_of(rank, secrets):
    from hipress.torch.authentication import authenticate

    os.environ["HIPRESS_SECRET"] = secrets[rank]
    first = authenticate()
    assert authenticate() is first


def test_ranks_with_the_same_secret_are_accepted():
    returned(run_ranks(secret_of, 3, [SECRET] * 3))
    returned(run_ranks(secret_of, 2, [""] * 2))


@pytest.mark.parametrize(
    "secret, sentence",
    [
        (OTHER_SECRET, f"rank 2 {NOT_PROVED}"),
        ("", "rank 2 has no HIPRESS_SECRET, and rank 0 has one"),
        ("guessed", "HIPRESS_SECRET of rank 2 has fewer than 16 characters"),
    ],
)
def test_rank_without_the_secret_is_named_on_all_ranks(secret, sentence):
    first, second, last = run_ranks(secret_of, 3, [SECRET, SECRET, secret], timeout=30)
    for text in (first, second):
        assert text.startswith(f"HipressError: {sentence}"), text
    if secret != OTHER_SECRET:
        assert last == first


def waits_for_a_proof(rank):
    from hipress.torch.authentication import authenticate

    if rank == 0:
        os.environ["HIPRESS_SECRET"] = SECRET
        authenticate(timeout=0.5)


def test_rank_that_does_not_answer_is_named():
    text, _ = run_ranks(waits_for_a_proof, 2, timeout=30)
    sentence = "waited 0.5 s for rank 1 to prove that it knows this job's secret (HIPRESS_SECRET)"
    assert text.startswith(f"HipressError: {sentence}"), text


def overwrites_notes(rank, text):
    """Run rank 1 as a stranger that changes in the store what rank 0 has left there."""
    import datetime
    import hashlib

    import torch.distributed as dist

    from hipress.torch import private
    from hipress.torch.authentication import authenticate

    if rank == 0:
        os.environ["HIPRESS_SECRET"] = SECRET
        authenticate(timeout=10)
    about = hashlib.sha256(str([0, 1]).encode()).hexdigest()[:16]
    notes = dist.PrefixStore(f"hipress/proof/{about}/1", private.default_store())
    notes.wait(["nonce/0"], datetime.timedelta(seconds=10))
    notes.set("nonce/0", text)
    notes.set("nonce/1", text)


@pytest.mark.parametrize("text", ["none", "00" * 32])
def test_stranger_that_writes_to_the_store_cannot_switch_off_or_replay_the_proof(text):
    first, _ = run_ranks(overwrites_notes, 2, text, timeout=30)
    sentence = "another process changed in the store what this rank had left there"
    assert isinstance(first, str) and first.startswith(f"HipressError: {sentence}"), first


def test_seal_is_not_valid_for_another_rank_or_exchange():
    from hipress.torch.authentication import Authenticated

    sender, receiver = Authenticated(b"key"), Authenticated(b"key")
    sealed = b"value" + sender.seal(1, b"value")
    assert receiver.open(1, sealed) == b"value"
    assert receiver.open(0, sealed) is None
    assert receiver.open(1, b"V" + sealed[1:]) is None and receiver.open(1, b"") is None
    receiver.next()
    assert receiver.open(1, sealed) is None
    assert Authenticated().open(0, b"value") == b"value"


def too_large(rank):
    from hipress.torch import exchange

    exchange.MAX_BYTES = 20
    exchange.gather(None, "x" * (rank * 100), "settings", str)


def another_type(rank):
    from hipress.torch import exchange

    exchange.gather(None, rank or "text", "digests", int)


def test_values_that_are_too_large_or_of_another_type_are_refused_on_all_ranks():
    for text in run_ranks(too_large, 2, timeout=30):
        want = "HipressError: rank 1 announced 102 bytes of settings, and 1 to 20 are allowed"
        assert text.startswith(want), text
    for text in run_ranks(another_type, 2, timeout=30):
        want = "HipressError: the digests of rank 0 are malformed (ValidationError)"
        assert text.startswith(want), text


def copies_a_state(rank):
    from hipress.torch import exchange

    os.environ["HIPRESS_SECRET"] = SECRET
    exchange._BATCH_BYTES = 64
    state = {
        "state": {
            0: {"step": torch.tensor(3.0), "mean": torch.arange(6.0).reshape(2, 3).t()},
            7: {"half": torch.full((40,), 1.5).bfloat16(), "mask": torch.tensor([True, False])},
        },
        "groups": [{"lr": 0.1, "betas": (0.9, math.inf), "fused": None, "params": [0, 7]}],
        "dtype": torch.float16,
        "empty": torch.zeros(0, 3),
        "conjugate": torch.tensor([1 + 2j, 3 - 4j]).conj(),
        "negative": torch.tensor([1 + 2j]).conj().imag,
    }
    found = exchange.broadcast_state(None, state if rank == 1 else None, "states", 1)
    assert found["groups"] == state["groups"] and found["dtype"] == torch.float16
    assert found["empty"].shape == (0, 3)
    assert found["conjugate"].tolist() == [1 - 2j, 3 + 4j] and found["negative"].tolist() == [-2]
    quantized = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8)
    for wrong in (torch.empty(2, device="meta"), quantized):
        with pytest.raises(ValueError, match="a tensor .* cannot be sent to other ranks"):
            exchange.broadcast_state(None, [wrong] if rank == 1 else None, "states", 1)
    for index, tensors in state["state"].items():
        for name, tensor in tensors.items():
            assert found["state"][index][name].dtype == tensor.dtype
            assert torch.equal(found["state"][index][name], tensor)
    exchange.broadcast_state(None, {"schedule": print} if rank == 1 else None, "states", 1)


def test_state_is_copied_or_refused_on_all_ranks():
    for text in run_ranks(copies_a_state, 2, timeout=30):
        want = "ValueError: states: a builtins.builtin_function_or_method cannot be sent"
        assert text.startswith(want), text


def gathers_states(rank):
    from hipress.torch import exchange

    os.environ["HIPRESS_SECRET"] = SECRET
    exchange._BATCH_BYTES = 64
    large, empty = torch.arange(40.0) + rank, torch.zeros(0, 3)
    found = exchange.gather_states(None, {"a": (large, rank), "b": [empty] * rank}, "states")
    if rank > 0:
        return found is None
    for number, state in enumerate(found):
        assert torch.equal(state["a"][0], large + number) and state["a"][1] == number
        assert [tensor.shape for tensor in state["b"]] == [empty.shape] * number
    return len(found) == 3


def test_states_of_all_ranks_are_gathered_on_rank_0():
    assert run_ranks(gathers_states, 3, timeout=30) == [True] * 3
