"""The native engine under a process group: failure reports to other ranks, who may connect."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest

from harness.torch_ranks import returned, run_ranks, torch

COUNT = 5000


def start_on(group, **options):
    from hipress.torch.settings import Settings
    from hipress.torch.start import start
    from hipress.torch.synchronizer import Synchronizer

    named = [("a", torch.nn.Parameter(torch.zeros(COUNT)))]
    settings, engine = start(lambda: Settings("onebit", min_size=10), group, named, **options)
    return Synchronizer(settings, engine, group, named)


def step(synchronizer, dtype=torch.float32, entries=(("a", 0, COUNT),)):
    from hipress.torch.gradient import Gradient

    flat = torch.ones(COUNT, dtype=dtype)
    synchronizer.synchronize(flat, [Gradient(*each) for each in entries], "bucket 0").wait()
    return flat


def caught(*args, **keywords):
    started = time.monotonic()
    try:
        while True:
            step(*args, **keywords)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}", time.monotonic() - started


def engines(rank):
    """Count engines: one for a group, however many compressions it has; each group has a separate
    one."""
    import torch.distributed as dist

    groups = [dist.group.WORLD, dist.new_group([1, 2])]
    made = [start_on(group) for group in groups for _ in range(2) if rank > 0 or group is groups[0]]
    for each in made:
        assert torch.equal(step(each), torch.ones(COUNT))
    return [each.engine.name for each in made]


@pytest.mark.slow
def test_compressions_of_one_group_share_its_engine():
    found = returned(run_ranks(engines, 3))
    assert [len(set(names)) for names in found] == [1, 2, 2]
    assert found[1] == found[2] and found[0][0] == found[1][0]


def gives_up(rank):
    import torch.distributed as dist

    group = dist.new_group([1, 3])
    if rank not in (1, 3):
        return None
    synchronizer = start_on(group)
    step(synchronizer)
    dist.barrier(group)  # or the failure might end the other's first step
    if rank == 3:
        synchronizer.engine.fail(MemoryError("no more memory for 'worker 1.bias'"), "bucket 7")
    first, _ = caught(synchronizer)
    after = start_on(group)  # both start again
    assert after.engine is not synchronizer.engine
    step(after)
    return first


@pytest.mark.slow
def test_ranks_are_named_as_in_the_whole_job_and_a_group_can_begin_anew():
    _, first, _, third = returned_but_errors(run_ranks(gives_up, 4))
    problem = "bucket 7: no more memory for 'worker 1.bias'"  # a parameter's name stays as it is
    assert first == f"HipressError: bucket 0 (a): rank 3 gave up: {problem}"
    assert third == f"HipressError: {problem}"


def is_numbered_anew(rank, folder):
    """Create groups of one name, the last of two ranks, whose engines are numbered again."""
    import torch.distributed as dist

    found = []
    for numbers in ((0, 1, 2), (0, 1, 2), (2, 1, 0), (0, 1)):
        if rank >= len(numbers):
            break
        where = f"file://{folder}/{len(found)}"
        dist.init_process_group("gloo", where, rank=numbers[rank], world_size=len(numbers))
        synchronizer = start_on(dist.group.WORLD, timeout=20)
        step(synchronizer)
        step(synchronizer, torch.float64, (("b", 0, 5),))  # by the user's group
        assert (synchronizer.rank, synchronizer.world_size) == (numbers[rank], len(numbers))
        found.append(synchronizer.engine.name)
        dist.destroy_process_group()
    return found


@pytest.mark.slow
def test_a_group_made_anew_has_an_engine_of_its_own_ranks(tmp_path):
    first, second, third = returned(run_ranks(is_numbered_anew, 3, str(tmp_path), join=False))
    assert first == second and first[:3] == third
    assert first[0] == first[1] and len({*first}) == 3


def is_alone(rank):
    import torch.distributed as dist

    import hipress.runtime.scheduler

    if rank == 0:
        hipress.runtime.scheduler._start = lambda *_: os._exit(3)
    try:
        start_on(dist.group.WORLD, timeout=20)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}"


def test_a_first_rank_that_dies_before_it_tells_where_to_meet_is_named():
    _, error = run_ranks(is_alone, 2)
    assert error.startswith("HipressError: rank 0 did not start this job: "), error


def returned_but_errors(results):
    assert not any(str(found).startswith(("died", "AssertionError")) for found in results), results
    return results


def stops(rank, dtype):
    os.environ["HIPRESS_HEARTBEAT_INTERVAL_MS"] = "250"
    os.environ["HIPRESS_HEARTBEAT_TIMEOUT_MS"] = "4000"
    import torch.distributed as dist

    synchronizer = start_on(dist.group.WORLD, timeout=50)
    step(synchronizer, getattr(torch, dtype))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    return caught(synchronizer, getattr(torch, dtype))


@pytest.mark.slow
def test_a_stopped_rank_is_named_within_the_limit_of_silence():
    """All ranks report a stopped rank after the heartbeat timeout.

    Cost: The heartbeat timeout is 4 s: a shorter one would report busy machines' ranks, too.
    """
    results = run_ranks_without(stops, 3, 1, "float32")
    for text, seconds in results:
        assert re.match(r"HipressError: bucket 0 \(a\): rank 1 \(.*\) died: .*silent", text), text
        assert seconds < 12, text


def run_ranks_without(function, world_size, stopped, *args):
    """Return results of the other ranks; the stopped one has none, and is killed when they are
    done."""
    from harness import torch_ranks

    class OthersAreDoneError(Exception):
        pass

    found = {}

    def keep(rank, value):
        found[rank] = value
        if len(found) == world_size - 1:
            raise OthersAreDoneError

    with pytest.raises(OthersAreDoneError):
        torch_ranks.run_ranks(function, world_size, *args, timeout=30, when_done=keep)
    assert stopped not in found
    return [found[rank] for rank in sorted(found)]


def dies(rank):
    import torch.distributed as dist

    synchronizer = start_on(dist.group.WORLD)
    entries = (("b", 0, 5),)  # of a type that only the user's group can sum
    step(synchronizer, torch.float64, entries)
    if rank == 0:  # whose process also has the scheduler
        os._exit(3)
    return caught(synchronizer, torch.float64, entries)


@pytest.mark.slow
def test_the_first_ranks_death_is_its_own_and_what_the_users_group_sums_fails_with_it():
    _, *others = run_ranks(dies, 3)
    for text, seconds in others:
        assert re.match(r"HipressError: bucket 0 \(b\): rank 0 .*died: .*all-reduce", text), text
        assert seconds < 15, text


def shares_memory(rank):
    """Let the last rank die while fusion buffers of other ranks, which it reads in place, wait for
    it."""
    import torch.distributed as dist

    from hipress.torch.gradient import Gradient
    from hipress.torch.settings import Settings
    from hipress.torch.start import start
    from hipress.torch.synchronizer import Synchronizer

    sizes = [*[30_000] * 8, 50_000]  # the last is compressed, and the first ones travel together
    named = [(f"g{i}", torch.nn.Parameter(torch.zeros(size))) for i, size in enumerate(sizes)]
    settings, engine = start(
        lambda: Settings("onebit", min_size=40_000), dist.group.WORLD, named, timeout=60
    )
    synchronizer = Synchronizer(settings, engine, dist.group.WORLD, named)
    gradients = [Gradient(f"g{i}", sum(sizes[:i]), size) for i, size in enumerate(sizes)]
    for number in range(4):
        dist.barrier()
        if number == 3 and rank == 2:
            time.sleep(1)  # others have sent all that they can
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        try:
            synchronizer.synchronize(torch.ones(sum(sizes)), gradients, "bucket 0").wait()
        except RuntimeError as error:
            lent = engine.member.stats()["lent_bytes"]
            return [str(error), time.monotonic() - began, lent]


@pytest.mark.slow
def test_a_death_ends_steps_whose_fusion_buffers_the_dead_had_in_shared_memory():
    *others, _ = run_ranks(shares_memory, 3, timeout=30)
    for text, seconds, lent in others:
        assert re.match(r"bucket 0 .*: rank 2 .* died: ", text), text
        assert seconds < 10 and lent > 0


def has_a_secret(rank, ranks):
    import torch.distributed as dist

    if rank in ranks:
        os.environ["HIPRESS_SECRET"] = "0123456789abcdef0123456789abcdef"
    synchronizer = start_on(dist.group.WORLD)
    step(synchronizer)
    store = dist.PrefixStore(
        f"hipress/{synchronizer.engine.name}", dist.distributed_c10d._get_default_store()
    )
    return os.environ["HIPRESS_SECRET"] in store.get("scheduler").decode()


@pytest.mark.slow
def test_a_secret_that_all_ranks_have_never_goes_through_the_store():
    assert returned(run_ranks(has_a_secret, 2, [0, 1])) == [False, False]
    for text in run_ranks(has_a_secret, 2, [1]):
        assert text.startswith("HipressError: rank 0 has no HIPRESS_SECRET, and rank 1 has"), text


def differ(rank):
    import torch.distributed as dist

    synchronizer = start_on(dist.group.WORLD)
    return caught(synchronizer, entries=(("a", 0, COUNT - rank),))[0]


def test_ranks_that_synchronise_something_else_are_told_so():
    for text in run_ranks(differ, 2):
        assert text.startswith("HipressError: bucket 0 (a): "), text
        assert "by rank 0 with 5000 float32 elements, but by rank 1 with 4999" in text, text


def listening():
    """Return the ports at which this process listens."""
    mine = {os.readlink(fd) for fd in Path("/proc/self/fd").iterdir() if fd.is_symlink()}
    ports = set()
    for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and f"socket:[{fields[9]}]" in mine:
            ports.add(int(fields[1].split(":")[1], 16))
    return ports


def is_visited(rank):
    import torch.distributed as dist

    before = listening()
    synchronizer = start_on(dist.group.WORLD)
    ours = listening() - before
    step(synchronizer)
    for port in ours:
        for said in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 40):
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(said)
                stranger.settimeout(5)
                try:
                    while stranger.recv(4096):
                        pass
                except (ConnectionError, TimeoutError):
                    pass
    step(synchronizer)
    return len(ours), synchronizer.engine.member.stats()["refused_connections"]


@pytest.mark.slow
def test_strangers_are_refused_on_every_port():
    found = returned(run_ranks(is_visited, 2, timeout=90))
    assert [ports for ports, _ in found] == [2, 1]  # also the scheduler's
    assert all(refused >= 2 for _, refused in found), found


def cannot_be_found(rank):
    import torch.distributed as dist

    del os.environ["GLOO_SOCKET_IFNAME"]
    os.environ["MASTER_ADDR"] = "no.such.host.invalid"
    start_on(dist.group.WORLD)


@pytest.mark.slow
def test_a_first_rank_without_an_address_says_what_to_set():
    first, second = run_ranks(cannot_be_found, 2)
    assert "no address is known for 'no.such.host.invalid'" in first, first
    assert second.startswith("HipressError: rank 0: no address is known"), second


def drops(rank):
    """Check that a deleted compression removes its keys when the group's next one creates new
    ones."""
    import torch.distributed as dist

    first = start_on(dist.group.WORLD)
    engine, result = first.engine, step(first)
    (key,) = first._executor._keys.values()
    del first
    second = start_on(dist.group.WORLD)
    assert second.engine is engine and torch.equal(step(second), result)
    with pytest.raises(RuntimeError, match=f"there is no key {key}"):
        engine.momentum(key, COUNT)
    return len(engine._retired_keys)


@pytest.mark.slow
def test_keys_of_a_dropped_compression_leave_the_engine():
    assert run_ranks(drops, 2) == [0, 0]
