"""The demo: trains on handwritten digits over a real cluster of processes, with and without
compression, and shows what compression saves and what it costs.

`make demo` runs it. It starts, for each compression type in turn, a scheduler, 2 servers and 4
workers with tools/launch.py, and ends with a table and the picture output/demo.png.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

import chart

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "python"))

# Gradients here are sums over a worker's 16 images: about 1 for the weights that matter. The layers
# are small and the run is short (300 steps), so sparse types send more than of a large model.
SETTINGS: dict[str, list[str]] = {
    "2bit": ["--param", "threshold=0.5"],
    "dgc": ["--param", "ratio=0.01", "--param", "momentum=0", "--param", "warmup=60"],
    "graddrop": ["--param", "drop=0.99"],
    "randomk": ["--param", "ratio=0.25"],
    "terngrad": ["--param", "bitwidth=4"],
}
ORDER = ("none", "2bit", "onebit", "1bit")


class RunError(RuntimeError):
    """A training job failed; the message ends with what it printed last."""


def available_types() -> list[str]:
    """All compression types of the library, uncompressed first."""
    import hipress

    known = list(hipress.codecs())
    first = [name for name in ORDER if name in known]
    return first + sorted(set(known) - set(first))


def read_records(path: Path) -> list[dict[str, Any]]:
    """The JSON lines that are complete so far."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line]


def read_weights(path: Path, workers: int) -> list[str]:
    """The hash of each worker's final weights."""
    files = [Path(f"{path}.rank{rank}") for rank in range(workers)]
    return [json.loads(file.read_text())["weights"] for file in files]


def train(
    kind: str, args: argparse.Namespace, folder: Path, progress: Progress, task: TaskID
) -> list[dict[str, Any]]:
    """One job to its end; moves the progress bar; returns its epochs.

    Raises:
        RunError: it failed, took longer than the limit, or the workers' weights differ.
    """
    output, log = folder / f"{kind}.jsonl", folder / f"{kind}.log"
    command = [sys.executable, str(ROOT / "tools" / "launch.py")]
    command += ["-n", str(args.workers), "-s", str(args.servers), "--"]
    command += [sys.executable, str(HERE / "train.py"), "--type", kind, "--output", str(output)]
    command += ["--epochs", str(args.epochs), "--seed", str(args.seed), *SETTINGS.get(kind, [])]
    progress.start_task(task)
    with log.open("w") as file:
        job = subprocess.Popen(
            command,
            stdout=file,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    deadline = time.monotonic() + args.limit
    try:
        while True:
            ended = job.poll() is not None
            records = read_records(output)
            shown = f"{100 * records[-1]['accuracy']:.1f} %" if records else "starting"
            progress.update(task, completed=len(records), accuracy=shown)
            if ended or time.monotonic() > deadline:
                break
            time.sleep(0.1)
    finally:
        _end(job)
    if job.returncode != 0 or len(records) < args.epochs:
        why = f"status {job.returncode}" if ended else f"no end after {args.limit:.0f} s"
        raise RunError(f"the {kind} run failed: {why}\n{_tail(log)}")
    weights = read_weights(output, args.workers)
    if len(set(weights)) != 1:
        raise RunError(f"the workers of the {kind} run ended with different weights: {weights}")
    return records


def _end(job: subprocess.Popen) -> None:
    """Stops the launcher, which stops its processes; kills them all if it does not."""
    if job.poll() is None:
        job.send_signal(signal.SIGTERM)
        try:
            job.wait(timeout=10)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def _tail(log: Path, lines: int = 25) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--servers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--types", nargs="+", help="default: all that the library has")
    parser.add_argument("--output", type=Path, default=ROOT / "output", help="folder")
    parser.add_argument("--limit", type=float, default=240, help="seconds that one run may take")
    return parser.parse_args()


def main() -> int:
    args = arguments()
    console = Console()
    types = args.types or available_types()
    args.output.mkdir(parents=True, exist_ok=True)
    picture = args.output / "demo.png"
    console.print(
        f"Training a convolutional network on 1,280 scans of handwritten digits: a scheduler, "
        f"{args.servers} servers and {args.workers} workers, once for each compression type."
    )
    columns = (
        TextColumn("[bold]{task.fields[kind]:<8}"),
        BarColumn(),
        TextColumn("epoch {task.completed:>2.0f}/{task.total:.0f}"),
        TextColumn("accuracy {task.fields[accuracy]:<8}"),
        TimeElapsedColumn(),
    )
    runs: dict[str, list[dict[str, Any]]] = {}
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="hipress-demo-") as folder:
        with Progress(*columns, console=console) as progress:
            tasks = {
                kind: progress.add_task("", total=args.epochs, start=False, kind=kind, accuracy="")
                for kind in types
            }
            try:
                for kind, task in tasks.items():
                    runs[kind] = train(kind, args, Path(folder), progress, task)
            except RunError as error:
                progress.stop()
                console.print(f"[red]{error}[/]", markup=True, highlight=False)
                return 1
    console.print()
    console.print(chart.summary(runs, args.workers, args.servers))
    console.print(
        f"In every run all {args.workers} workers ended with bit-identical weights. "
        f"The whole demo took {time.monotonic() - started:.0f} s."
    )
    (args.output / "demo.json").write_text(json.dumps(runs, indent=1) + "\n")
    chart.plot(runs, picture)
    console.print(f"Picture: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
