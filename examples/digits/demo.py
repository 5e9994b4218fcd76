"""Demo that trains on handwritten digits, with and without compression, and draws the difference.

The cluster's processes are real, on this host and over slow links.

`make demo` runs it. A job of 4 workers and 4 servers trains until 97% of the test images are right,
once for each compression type: on loopback, and then in network namespaces whose links carry
250 Mbit/s. (All nodes share this host's processors, so links are slowed down accordingly.)
Without namespaces, which need root, the simulator predicts the second part.
It ends with a table and the picture output/demo.png.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "python"), str(HERE)]

import chart  # noqa: E402
import prediction  # noqa: E402
from harness import netns  # noqa: E402
from harness.cluster import Cluster  # noqa: E402
from harness.processes import base_environment  # noqa: E402

# Gradients are sums over a worker's 16 images: about 1 for important weights. The layers are small
# and the run is short (300 steps), so sparse types send a larger share than of a large model.
SETTINGS: dict[str, list[str]] = {
    "2bit": ["--param", "threshold=0.5"],
    "dgc": ["--param", "ratio=0.01", "--param", "momentum=0", "--param", "warmup=60"],
    "graddrop": ["--param", "drop=0.99"],
    "randomk": ["--param", "ratio=0.25"],
    "terngrad": ["--param", "bitwidth=4"],
}
SHOWN = ("none", "fp16", "maxmin", "2bit", "onebit")
"""Types that the demo shows by default."""

Records = list[dict[str, Any]]


class RunError(RuntimeError):
    """Failed training job. The message ends with its last output."""


@dataclass(frozen=True)
class Result:
    """Runs of all types, by name, and their links."""

    runs: Mapping[str, Records]
    links: str
    """Rate of the links, such as "1 Gbit/s"; empty on loopback."""
    predicted: bool = False


def available_types() -> list[str]:
    """Return all compression types of the library, with the demo's types first."""
    import hipress

    known = list(hipress.codecs())
    first = [name for name in SHOWN if name in known]
    return first + sorted(set(known) - set(first))


def read_records(path: Path) -> Records:
    """Return the complete JSON lines of the file."""
    if not path.exists():
        return []
    lines = path.read_text().split("\n")[:-1]
    return [json.loads(line) for line in lines if line]


def read_weights(path: Path, workers: int) -> list[str]:
    """Return the hash of each worker's final weights."""
    files = [Path(f"{path}.rank{rank}") for rank in range(workers)]
    return [json.loads(file.read_text())["weights"] for file in files]


def train(
    kind: str,
    args: argparse.Namespace,
    network: netns.ShapedNetwork | None,
    progress: Progress,
    task: TaskID,
) -> Records:
    """Run one job until the target accuracy, or its last epoch, and return its epochs.

    Args:
        network: Network on whose node i worker i and server i run; None: all on loopback.

    Raises:
        RunError: If it failed, took too long, or the workers' weights differ.
    """
    progress.start_task(task)
    with tempfile.TemporaryDirectory(prefix="hipress-demo-") as folder:
        output = Path(folder) / "run.jsonl"
        command = [sys.executable, str(HERE / "train.py"), "--type", kind, "--output", str(output)]
        command += ["--epochs", str(args.epochs), "--target", str(args.target)]
        command += ["--hidden", str(args.hidden), "--seed", str(args.seed)]
        command += SETTINGS.get(kind, [])
        with Cluster(
            command,
            workers=args.workers,
            servers=args.workers,
            network=network,
            base=base_environment(),
            env={"OMP_NUM_THREADS": "1"},
            node_of=lambda role, rank: rank,
        ) as job:
            deadline = time.monotonic() + args.limit
            while job.running() and time.monotonic() < deadline:
                records = read_records(output)
                shown = f"{100 * records[-1]['accuracy']:.1f} %" if records else "starting"
                progress.update(task, completed=len(records), accuracy=shown)
                if any(process.returncode for process in job.processes.values()):
                    break
                time.sleep(0.1)
            failed = {name: p.returncode for name, p in job.processes.items() if p.returncode != 0}
            if failed:
                why = "failed" if any(failed.values()) else f"had no end after {args.limit:.0f} s"
                raise RunError(f"the {kind} run {why}\n{job.report()[-4000:]}")
        records = read_records(output)
        shown = f"{100 * records[-1]['accuracy']:.1f} %"
        progress.update(task, total=len(records), completed=len(records), accuracy=shown)
        progress.stop_task(task)
        weights = read_weights(output, args.workers)
    if len(set(weights)) != 1:
        raise RunError(f"the workers of the {kind} run ended with different weights: {weights}")
    return records


def train_all(
    types: list[str],
    args: argparse.Namespace,
    network: netns.ShapedNetwork | None,
    console: Console,
) -> dict[str, Records]:
    """Run one job for each type, one after the other, with a progress bar each."""
    columns = (
        TextColumn("[bold]{task.fields[kind]:<8}"),
        BarColumn(),
        TextColumn("epoch {task.completed:>2.0f}"),
        TextColumn("accuracy {task.fields[accuracy]:<8}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        tasks = {
            kind: progress.add_task("", total=args.epochs, start=False, kind=kind, accuracy="")
            for kind in types
        }
        return {kind: train(kind, args, network, progress, task) for kind, task in tasks.items()}


def over_links(
    local: Result, types: list[str], args: argparse.Namespace, console: Console
) -> Result:
    """Return the same training over shaped links, or the simulator's prediction if impossible."""
    links = chart.rate_text(netns.bits_per_second(args.rate))
    try:
        with netns.ShapedNetwork(args.workers, rate=args.rate, verify=False) as network:
            console.print(f"\nThe same over links of {links}, in network namespaces:")
            return Result(train_all(types, args, network, console), links)
    except netns.NetworkError as error:
        console.print(f"\nNo links of {links} can be made here: {error}.")
        console.print("The simulator predicts them from the runs above.")
    bandwidth = netns.bits_per_second(args.rate) / 8
    runs = prediction.predict(local.runs, args.workers, bandwidth, args.hidden)
    return Result(runs, links, predicted=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--workers", type=int, default=4, help="each with a server beside it")
    parser.add_argument("--rate", default="250mbit", help="of a link (default: 250mbit)")
    parser.add_argument("--target", type=float, default=0.97, help="test accuracy, 0 to 1")
    parser.add_argument("--epochs", type=int, default=15, help="at most")
    parser.add_argument("--hidden", type=int, default=2048, help="units of the dense layer")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--types", nargs="+", default=list(SHOWN), help=f"default: {' '.join(SHOWN)}; all: all"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "output", help="folder")
    parser.add_argument("--limit", type=float, default=240, help="seconds that one run may take")
    return parser.parse_args()


def end_when_terminated() -> None:
    """Make SIGTERM end this process as Ctrl-C does, so that nothing is left behind."""

    def end(*unused: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)


def main() -> int:
    args = arguments()
    end_when_terminated()
    console = Console()
    types = available_types() if args.types == ["all"] else args.types
    args.output.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    console.print(
        f"Training a convolutional network of {prediction.elements(args.hidden) / 1e6:.1f} million "
        f"weights on 1,280 scans of handwritten digits, until {100 * args.target:g}% of the test "
        f"images are right: {args.workers} workers and servers, once for each compression type.\n"
        "All on this host:"
    )
    try:
        local = Result(train_all(types, args, None, console), "")
        linked = over_links(local, types, args, console)
    except RunError as error:
        console.print(f"[red]{error}[/]", markup=True, highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("\nstopped; its processes and namespaces are gone")
        return 130
    console.print()
    console.print(chart.summary(local.runs, linked, args.target))
    console.print(
        f"In every run all {args.workers} workers ended with bit-identical weights. "
        f"The whole demo took {time.monotonic() - started:.0f} s."
    )
    record = {"loopback": local.runs, "links": linked.links, "predicted": linked.predicted}
    text = json.dumps({**record, "runs": linked.runs}, indent=1)
    (args.output / "demo.json").write_text(text + "\n")
    picture = args.output / "demo.png"
    with contextlib.suppress(ImportError):
        chart.plot(linked, args.target, picture)
        console.print(f"Picture: {picture}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
