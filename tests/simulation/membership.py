"""Random schedules of the membership protocol, each replayed exactly by its seed.

    python -m tests.simulation.membership --seed 7
    python -m tests.simulation.membership --schedules 10000

Messages are late, repeated, lost and overtake each other; links are cut one way, both ways, and
flap; gateways refuse connections, one way or both ways, on behalf of live processes; clocks run at
different speeds and jump; processes are killed, also two at a time, restarted, stopped and woken;
engines fail; members leave; workers hang and are asked to leave. After each event: at most one view
per epoch among the living (and every member of it has the same one), no view trains while a later
one has trained, epochs only grow, quorums meet, no view is too small, only the dead are called
dead, and no process trains on a state that differs from the other members'. When the faults have
ended, all processes reach one view in a bounded time, and train.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from dataclasses import dataclass

from hipress.elastic.membership.status import waits_for
from tests.simulation.world import Disagreement, Violation, World

FAULT_SECONDS = 5.0
CALM_SECONDS = 60.0
STEPS_TO_SEE = 3


@dataclass(frozen=True)
class Outcome:
    """Result of a schedule. ``over``: the job ended, as no process with its state was left."""

    over: bool
    steps: int
    epochs: int
    seconds: float


def _restart_time(rng: random.Random) -> float | None:
    return rng.choice([None, rng.uniform(0.05, 0.5), rng.uniform(0.5, 3.0)])


def _kill(world: World, rng: random.Random) -> None:
    slots = range(len(world.addresses))
    for slot in rng.sample(slots, min(len(slots), rng.choice([1, 1, 1, 2, 2, 3]))):
        delay = rng.choice([0.0, rng.uniform(0, 0.05)])
        world.after(delay, world.kill, slot, _restart_time(rng))


def _freeze(world: World, rng: random.Random) -> None:
    slots = rng.sample(range(len(world.addresses)), rng.choice([1, 1, 2]))
    for process in [world.live[slot] for slot in slots if slot in world.live]:
        process.frozen = True
        world.say(f"stop {process}")
        world.after(rng.choice([rng.uniform(0.1, 0.9), rng.uniform(1, 4)]), _wake, process)


def _wake(process) -> None:  # type: ignore[no-untyped-def]
    process.world.say(f"wake {process}")
    process.frozen = False
    inbox, process.inbox = process.inbox, []
    if process.world.rng.random() < 0.3:
        process.do(process._tick)
    for action in inbox:
        process.do(action)


def _partition(world: World, rng: random.Random) -> None:
    count = len(world.addresses)
    side = set(rng.sample(range(count), rng.randint(1, count - 1)))
    pairs = {(a, b) for a in side for b in range(count) if b not in side}
    kind = rng.randrange(4)
    if kind == 0:  # both ways
        pairs |= {(b, a) for a, b in pairs}
    elif kind == 2:  # one link, one way
        pairs = {rng.choice(sorted(pairs))}
    elif kind == 3:  # one link, both ways
        a, b = rng.choice(sorted(pairs))
        pairs = {(a, b), (b, a)}
    flaps = rng.choice([1, 1, rng.randint(2, 6)])
    length = rng.uniform(0.1, 0.6) if flaps > 1 else rng.uniform(0.2, 3.0)
    for flap in range(flaps):
        world.after(2 * flap * length, _cut, world, pairs, True)
        world.after((2 * flap + 1) * length, _cut, world, pairs, False)


def _cut(world: World, pairs: set[tuple[int, int]], cut: bool) -> None:
    if cut and world.now > FAULT_SECONDS:
        return
    world.say(f"{'cut' if cut else 'mend'} {sorted(pairs)}")
    world.cut = world.cut | pairs if cut else world.cut - pairs


def _refuse(world: World, rng: random.Random) -> None:
    """Take down a tunnel between two sites, whose gateways then refuse connections."""
    pairs = _sides(world, rng)
    if rng.random() < 0.7:  # both ways
        pairs |= {(b, a) for a, b in pairs}
    begin = rng.uniform(0, 0.2)
    world.after(begin, _refuse_now, world, pairs, True)
    world.after(begin + rng.uniform(0.1, 3.0), _refuse_now, world, pairs, False)


def _refuse_now(world: World, pairs: set[tuple[int, int]], refuses: bool) -> None:
    if refuses and world.now > FAULT_SECONDS:
        return
    world.say(f"{'refuse' if refuses else 'let through'} {sorted(pairs)}")
    world.refuse(pairs, refuses)


def _sides(world: World, rng: random.Random) -> set[tuple[int, int]]:
    """Return the pairs of slots from one site to the other."""
    count = len(world.addresses)
    if len(set(world.hosts)) > 1:
        side = {slot for slot in range(count) if world.hosts[slot] == world.hosts[0]}
    else:
        side = set(rng.sample(range(count), rng.randint(1, count - 1)))
    return {(a, b) for a in side for b in range(count) if b not in side}


def _split_and_kill(world: World, rng: random.Random) -> None:
    """Let one side continue without the other; then all of it die but one, which is still cut
    off."""
    slots = list(range(len(world.addresses)))
    rng.shuffle(slots)
    size = rng.randint(1, len(slots) - 1)
    side, rest = slots[:size], slots[size:]
    pairs = {(a, b) for a in side for b in rest} | {(b, a) for a in side for b in rest}
    last = {pair for pair in pairs if side[0] in pair}
    length = rng.uniform(0.3, 2.0)
    if rng.random() < 0.5:  # who is left is one that joined meanwhile
        world.kill(side[0], rng.uniform(0.02, 0.3))
        begin = rng.uniform(0, 0.1)
        length += begin
        world.after(begin, _cut, world, pairs, True)
    else:
        _cut(world, pairs, True)
    for slot in side[1:]:
        world.after(length + rng.uniform(0, 0.05), world.kill, slot, _restart_time(rng))
    world.after(length + rng.uniform(0, 0.1), _cut, world, pairs - last, False)
    world.after(length + rng.uniform(0.5, 2.5), _cut, world, last, False)


def _lose(world: World, rng: random.Random) -> None:
    world.loss = rng.uniform(0.02, 0.5)
    world.after(rng.uniform(0.2, 1.5), setattr, world, "loss", 0.0)


def _jump(world: World, rng: random.Random) -> None:
    for process in list(world.live.values()):
        if rng.random() < 0.5:
            process.offset += rng.choice([rng.uniform(0, 0.6), rng.uniform(1, 100)])


def _engine(world: World, rng: random.Random) -> None:
    for process in list(world.live.values()):
        if process.view is not None and rng.random() < 0.5:
            epoch = process.view.epoch
            process.do(
                lambda process=process, epoch=epoch: process.machine.request_change(
                    process.clock(), "the engine failed", epoch
                )
            )


def _expel(world: World, rng: random.Random) -> None:
    """Let some workers wait for one that hangs, and ask it to leave; it may come back later."""
    slots = [slot for slot, process in world.live.items() if process.view is not None]
    if len(slots) < 2:
        return
    late, *others = rng.sample(slots, rng.randint(2, len(slots)))
    process = world.live[late]
    process.hangs = True
    world.after(rng.uniform(0, 3), process.come_back)
    for other in others:
        _ask_to_leave(world, world.live[other], process.machine.me.id, world.live[other].view.epoch)


def _ask_to_leave(world: World, process, member_id: str, epoch: int) -> None:  # type: ignore[no-untyped-def]
    machine = process.machine
    if process.alive and world.now < FAULT_SECONDS and machine.is_current(epoch):
        if not machine.trouble:
            process.do(lambda: machine.expel(process.clock(), member_id, epoch, "it hangs"))
        world.after(world.rng.uniform(0.1, 0.4), _ask_to_leave, world, process, member_id, epoch)


def _leave(world: World, rng: random.Random) -> None:
    slot = rng.randrange(len(world.addresses))
    process = world.live.get(slot)
    if process is None:
        return
    at_boundary = rng.random() < 0.5
    world.say(f"leave {process} {at_boundary}")
    process.do(lambda: process.machine.leave(process.clock(), at_boundary))

    def end() -> None:
        if world.live.get(slot) is process:
            world.kill(slot, _restart_time(rng))

    world.after(rng.uniform(0.01, 1.0), end)


def _kill_all(world: World, rng: random.Random) -> None:
    """Kill all processes, one soon after the other, and sometimes those that find the next view."""
    world.founders_to_kill = rng.randint(0, 3)
    for slot in range(len(world.addresses)):
        world.after(rng.uniform(0, 0.3), world.kill, slot, rng.uniform(0.1, 0.5))
    world.late = rng.uniform(0, 0.8)
    world.after(rng.uniform(1, 3), setattr, world, "late", 0.05)


FAULTS = (
    *(_kill, _kill, _kill, _split_and_kill, _split_and_kill),
    *(_freeze, _freeze, _partition, _partition, _lose, _jump, _engine, _leave, _expel, _expel),
    _refuse,
)


def run(
    seed: int,
    log: list[str] | None = None,
    uncounted: bool = False,
    refusals: bool = False,
) -> Outcome:
    """Run one schedule.

    Args:
        uncounted: See World.
        refusals: Whether gateways refuse connections in most schedules.

    Raises:
        Violation: The protocol broke a promise, or did not come to an agreement.
    """
    rng = random.Random(seed)
    slots = rng.randint(2, 6)
    min_members = rng.choice([1, 1, rng.randint(1, slots), slots // 2 + 1])
    world = World(rng, slots, min_members, uncounted)
    world.log = log
    world.say(f"{slots} slots, min_members {min_members}")
    for _ in range(rng.randint(1, 8)):
        faults = (*FAULTS, *(_kill_all,) * 4) if uncounted else FAULTS
        faults += (_refuse,) * 8 * refusals
        world.after(rng.uniform(0, FAULT_SECONDS), rng.choice(faults), world, rng)
    world.run(FAULT_SECONDS)
    world.say("calm")
    world.cut, world.loss, world.founders_to_kill = set(), 0.0, 0
    _refuse_now(world, set(world.refusing), False)
    for process in list(world.live.values()):
        if process.frozen:
            _wake(process)
    begin, needed = world.now, 0
    if uncounted:  # although all may have died, and nothing else may happen
        for slot in range(slots):
            world.after(4.1, world.start, slot, 100)

    def done() -> bool:
        nonlocal needed
        for slot in range(slots):  # deaths from here on are consequences of earlier faults
            if slot not in world.live and world.now > begin + 4:
                world.start(slot, 100)
        if len(world.live) < slots or not world.agreed():
            needed = 0
            return False
        needed = needed or world.completed_steps + STEPS_TO_SEE * slots
        return world.completed_steps >= needed

    reached = world.run(begin + CALM_SECONDS, done)
    if not reached and not world.is_over():
        waits = {str(each): waits_for(each.machine) for each in world.live.values()}
        raise Disagreement(f"no agreement {CALM_SECONDS} s after the last fault: {waits}")
    epochs = max((each.machine.newest.epoch for each in world.live.values()), default=0)
    return Outcome(not reached, world.completed_steps, epochs, world.now - begin)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, help="replay this schedule, and print what happens")
    parser.add_argument("--schedules", type=int, default=500)
    parser.add_argument("--uncounted", action="store_true", help="nobody counts restarts")
    parser.add_argument("--refusals", action="store_true", help="gateways refuse connections")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.schedules)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    over, slowest = 0, 0.0
    for seed in seeds:
        log: list[str] | None = [] if options.seed is not None else None
        try:
            outcome = run(seed, log, options.uncounted, options.refusals)
        except Exception as error:
            print(*(log or []), sep="\n")
            if not isinstance(error, Violation):
                traceback.print_exc()
            print(f"seed {seed}: {error}", file=sys.stderr)
            return 1
        print(*(log or []), sep="\n", end="" if log is None else "\n")
        over += outcome.over
        slowest = max(slowest, 0.0 if outcome.over else outcome.seconds)
    print(
        f"{len(seeds)} schedules kept all promises; {over} jobs were over, as nobody with their "
        f"state was left; the longest way to one view took {slowest:.1f} s after the last fault"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
