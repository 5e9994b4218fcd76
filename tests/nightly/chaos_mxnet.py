"""Kills, stops or ends a random process of random MXNet jobs, the launcher among them. Minutes.

Not for CI. Each job is an MXNet script under `tools/launch.py --hipress`, whose stores, optimizers
and keys are drawn by chance, as are victim, signal and moment. Whatever happens, the launcher ends
within its deadline: with 0, all workers being done and holding the same, or with another status and
a sentence that names the victim. No process crashes, and nothing is left: no process, shared memory
or temporary file.

    python tests/nightly/chaos_mxnet.py --jobs 50 --seed 1
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import havoc  # first: it finds the harness

from harness.launch import Launch, launched, marked
from hipress.base import process_table
from hipress.topology import topologies

WORKER = Path(__file__).with_name("mxnet_worker.py")
TIMEOUT = 60
DEADLINE = TIMEOUT + 40
"""Seconds from the signal. They cover the wait for a process or its push, the launcher's patience
with survivors, and room for a slow machine."""
CLEAN_UP = 10.0
"""Seconds in which nothing must be left of a job whose launcher was killed."""
SERVERLESS = topologies.names(servers=False)
SYNCHRONOUS = ("dist_sync", "dist_device_sync")
ASYNCHRONOUS = ("dist_async", "dist_device_async")
SIZES = (1, 10, 5_000, 70_000, 1_000_000)
TYPES = ("none", "2bit", "1bit", "onebit", "terngrad", "tbq", "maxmin", "maxminef", "topk")
TYPES += ("randomk", "dgc", "graddrop", "natural", "fp16", "bf16", "lossless")
CRASH = re.compile(
    r"Fatal Python error|Fatal Error|Segmentation fault|terminate called|Aborted|"
    r"SIGABRT|SIGSEGV|SIGBUS|SIGFPE|SIGILL|stack smashing|corrupted"
)


@dataclass
class Job:
    """Random job that is run once."""

    workers: int
    servers: int
    arguments: list[str]
    """Arguments of the launcher, for topology and plan."""
    settings: dict[str, object]
    """Settings of the script; see mxnet_worker.py."""
    strike: havoc.Strike
    """Fault to inject. Its victim is as the launcher names it, or "launcher", "supervisor of ..."
    or "none"."""

    @classmethod
    def draw(cls, dice: random.Random) -> Job:
        """Draw a random job."""
        workers, servers = dice.randint(2, 3), dice.choice([0, 1, 1, 2])
        program = dice.choice(["arrays", "arrays", "trainer", "module", "sparse"])
        if program == "sparse":
            servers = servers or 1
        asynchronous = servers > 0 and dice.random() < 0.25
        compressed = dice.random() < 0.8
        optimizer = dice.choice(["", "sgd", "adam"]) if not asynchronous else "sgd"
        params, arguments = {}, ["-s", str(servers)]
        if not servers:
            topology = dice.choice(SERVERLESS)
            if topologies.TOPOLOGIES[topology].needs_devices_per_host:
                compressed = True  # its parameters define how many workers share a host
                params["devices_per_host"] = dice.choice([1, workers])
            if compressed and dice.random() < 0.5:
                params["topology"] = topology
            else:
                arguments = ["--topo", topology]
        if compressed and not asynchronous and dice.random() < 0.15:
            arguments += ["--comprplan", "auto"]
        is_short = dice.random() < 0.3
        settings = {
            "seed": dice.randrange(1000),
            "program": program,
            "store": dice.choice(ASYNCHRONOUS if asynchronous else SYNCHRONOUS),
            "servers": servers,
            "compressed": compressed,
            "types": dice.sample(TYPES, 2),
            "params": params,
            "optimizer": optimizer,
            "sizes": [dice.choice(SIZES) for _ in range(dice.randint(1, 6))],
            "halves": [0] if dice.random() < 0.25 else [],
            "half": dice.random() < 0.4,
            "pushpull": dice.random() < 0.5,
            "on_kvstore": asynchronous or dice.random() < 0.5,
            "hybridized": dice.random() < 0.5,
            "width": dice.choice([10, 60, 300]),
            "layers": dice.randint(1, 4),
            "nap": 0,
            "barriers": dice.choice([0, 0.05]),
            "steps": dice.choice([8, 40]) if is_short else 1_000_000,
            "late": dice.choice([0, 1]),
            "leaves": None,
            "after": dice.choice(["raise", "exit", "return"]),
        }
        victims = ["scheduler", "launcher", *(f"worker {i}" for i in range(workers))]
        victims += [f"server {i}" for i in range(servers)]
        victims += [f"supervisor of {dice.choice(victims[2:])}"]
        victim = dice.choice([*victims, "none"])
        if victim == "none":
            settings["steps"] = dice.choice([8, 40])
            if dice.random() < 0.4:
                settings["leaves"] = {"rank": dice.randrange(workers), "step": dice.randint(2, 6)}
        signals = [signal.SIGKILL, signal.SIGTERM]
        if victim == "launcher":
            signals += [signal.SIGINT]
        else:
            signals += [signal.SIGSTOP]
        if victim.startswith("supervisor"):
            signals = [signal.SIGKILL, signal.SIGTERM]
        moment = dice.random() < 0.6
        after = dice.uniform(0, 1.5 if moment else 5)
        strike = havoc.Strike(victim, dice.choice(signals), after, moment)
        if strike.number == signal.SIGSTOP:
            strike.pause = havoc.draw_pause(dice)
        if strike.pause:
            settings.update(steps=havoc.NAPPING, nap=havoc.NAP)
        return cls(workers, servers, arguments, settings, strike)

    def __str__(self) -> str:
        leaves = self.settings["leaves"]
        event = str(self.strike)
        if self.strike.victim == "none":
            event = f"worker {leaves['rank']} leaves, step {leaves['step']}" if leaves else "peace"
        names = ("program", "store", "compressed", "types", "params", "half", "optimizer")
        names += ("on_kvstore", "after")
        picked = {name: self.settings[name] for name in names}
        return f"{self.workers} workers {' '.join(self.arguments)} {picked}; {event}"

    def play(self) -> list[str]:
        """Run the job; return what was wrong."""
        with tempfile.TemporaryDirectory(prefix="hipress-chaos-") as name:
            log, scratch = Path(name, "log"), Path(name, "scratch")
            scratch.mkdir()
            settings = json.dumps({**self.settings, "folder": name})
            env = {
                "HIPRESS_START_TIMEOUT": str(TIMEOUT),
                "HIPRESS_TIMEOUT": str(TIMEOUT),
                "HIPRESS_HEARTBEAT_TIMEOUT_MS": "3500",
                "PYTHONFAULTHANDLER": "1",
                "OMP_NUM_THREADS": "1",
                "TMPDIR": str(scratch),
            }
            command = ["-n", str(self.workers), *self.arguments, "--hipress"]
            command += [sys.executable, str(WORKER), settings]
            with (
                log.open("wb") as output,
                launched(command, env=env, stdout=output, stderr=output) as launch,
            ):
                hit = self._disturb(launch, log)
                if hit is None:
                    return ["it did not start"]
                shared = self._watch(launch, log)
                wrong = self._judge(launch, log, hit) + _left_over(launch, scratch, shared)
            return [f"{each}\n{log.read_text(errors='replace')[-12000:]}" for each in wrong[:1]]

    def _disturb(self, launch: Launch, log: Path) -> bool | None:
        """Send the signal; return whether it met a process, or None if there was none to meet."""
        strike = self.strike
        if strike.victim == "none":
            return False
        deadline = time.monotonic() + DEADLINE
        lines = {f"[worker {rank}] running" for rank in range(self.workers)}
        while strike.running and not lines <= set(log.read_text(errors="replace").splitlines()):
            if launch.process.poll() is not None:
                return False
            if time.monotonic() > deadline:
                return None
            time.sleep(0.05)
        time.sleep(strike.after)
        deadline = time.monotonic() + DEADLINE
        while launch.process.poll() is None and time.monotonic() < deadline:
            pid = processes(launch).get(strike.victim)
            with contextlib.suppress(ProcessLookupError):
                if pid is not None:
                    os.kill(pid, strike.number)
                    if strike.pause:
                        time.sleep(strike.pause)
                        with contextlib.suppress(ProcessLookupError):  # the launcher has ended it
                            os.kill(pid, signal.SIGCONT)
                    return True
            time.sleep(0.05)
        return False

    def _watch(self, launch: Launch, log: Path) -> set[str]:
        """Wait for the launcher's end; return the files in shared memory that its job used."""
        quiet = self.strike.victim == "none"  # then this time includes its start
        deadline, written, shared = time.monotonic() + DEADLINE * (3 if quiet else 1), 0, set()
        while time.monotonic() < deadline:
            before, written = written, log.stat().st_size
            if self.strike.pause and written > before:  # it continues, if slowly
                deadline = time.monotonic() + DEADLINE
            for pid in marked(launch.mark):
                with contextlib.suppress(OSError):
                    maps = Path(f"/proc/{pid}/maps").read_text()
                    shared.update(re.findall(r"/dev/shm/\S+", maps))
            with contextlib.suppress(subprocess.TimeoutExpired):
                launch.process.wait(0.5)
                break
        return shared

    def _judge(self, launch: Launch, log: Path, hit: bool) -> list[str]:
        """Return what was wrong with the launcher's end, and with what the job wrote."""
        status = launch.process.poll()
        if status is None:
            return [f"the job still runs: {', '.join(processes(launch))}"]
        text = log.read_text(errors="replace")
        lines = text.splitlines()
        wrong = [f"a crash: {line}" for line in lines if CRASH.search(line)]
        for line in lines:
            if "Traceback" in line and not line.startswith("[worker"):
                wrong.append(f"not a sentence but {line}")
        endless, leaves = self.settings["steps"] > 1000, self.settings["leaves"]
        strike = self.strike
        if strike.victim == "launcher" and hit:
            allowed = {-strike.number if strike.number == signal.SIGKILL else 128 + strike.number}
            if not (endless and strike.running):  # it had not started anything, or had ended it
                allowed |= {0, -strike.number}
            return wrong + [f"status {status}"] * (status not in allowed)
        if status == 0:
            digests = [line.split()[-1] for line in lines if "] done " in line]
            caught = "] failed: " in text and self.settings["after"] == "return"
            alone = leaves and self.settings["store"] in ASYNCHRONOUS  # no other process is needed
            if len(digests) < self.workers and not alone and not caught:
                wrong.append("status 0, and not all workers are done")
            elif len(set(digests)) > 1 and self.settings["store"] in SYNCHRONOUS:
                wrong.append(f"workers hold different values: {digests}")
            return wrong + ["status 0"] * (hit and endless and not caught)
        culprit = self._culprit(hit)
        if culprit is None or status < 0 or status == 124:
            return [*wrong, f"status {status}"]
        failed = [line for line in lines if "] failed: " in line]
        if strike.pause:  # unknown what the victim saw when it woke up
            failed = [line for line in failed if not line.startswith(f"[{strike.victim}]")]
        role, _, rank = culprit.partition(" ")
        name = re.compile(rf"{culprit}\b|{role}s \(rank {rank or 0}\)")
        if self.settings["after"] == "return":  # then a worker that failed leaves normally
            name = re.compile(rf"{name.pattern}|has left the job|left the job while")
        if strike.running or leaves:
            wrong += [f"no {culprit} in {line}" for line in failed if not name.search(line)]
        if (strike.running and endless) or leaves:  # then other workers exist, which notice it
            lines = [line for line in lines if not line.startswith("hipress-launch: ")]
        if not any(name.search(re.sub(r"^\[.*?\]", "", line)) for line in lines):
            wrong.append(f"nobody names {culprit}")
        return wrong

    def _culprit(self, hit: bool) -> str | None:
        """Return the name that the messages must hold; None if no process had a reason to fail."""
        if self.settings["leaves"]:
            return f"worker {self.settings['leaves']['rank']}"
        return self.strike.victim.replace("supervisor of ", "") if hit else None


def processes(launch: Launch) -> dict[str, int]:
    """Return a running job's processes by name."""
    environments, pids = {}, marked(launch.mark)
    # Read later: a process that is not in this table has ended.
    parents = process_table.parents()
    for pid in filter(parents.__contains__, pids):
        with contextlib.suppress(OSError):
            pairs = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
            environments[pid] = dict(pair.decode().partition("=")[::2] for pair in pairs)
    found = {"launcher": launch.process.pid}
    for pid, environment in environments.items():
        role = environment.get("DMLC_ROLE")
        parent = parents[pid]
        above = environments.get(parent, {}).get("DMLC_ROLE")
        if role and not above:
            number = environment.get(f"DMLC_{role.upper()}_ID")
            name = role if number is None else f"{role} {number}"
            found[name] = pid
            if parent in environments:  # otherwise adopted after its supervisor's end
                found[f"supervisor of {name}"] = parent
    return found


def _left_over(launch: Launch, scratch: Path, shared: set[str]) -> list[str]:
    """Return what an ended job has left behind."""
    try:
        launch.gone(CLEAN_UP)
    except AssertionError as error:
        return [f"{error}: {processes(launch)}"]
    # What a failed job leaves for `hipress debug` is to stay.
    files = [name for name in os.listdir(scratch) if not name.startswith("hipress-debug-")]
    files += filter(os.path.exists, shared)
    return [f"left behind: {', '.join(files)}"] if files else []


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=30))
