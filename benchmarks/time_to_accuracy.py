"""Seconds of training until a test accuracy is reached, on 4 nodes with 1 Gbit/s links.

The demo's network and data, with a dense layer of 2,048 units (2.2 million weights, 8.7 MB of
gradients) so that the network matters, as it does for real models. HiPress and stock MXNet run the
same script in the same namespaces; float16 gradients, the usual cheap remedy, are there too.

    python benchmarks/time_to_accuracy.py
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

import jobs
from jobs import netns

DIGITS = jobs.ROOT / "examples" / "digits"
sys.path[:0] = [str(DIGITS), str(jobs.ROOT / "python")]

import demo  # noqa: E402


@dataclass
class Row:
    """One way to train: its name, the script's arguments, and what the runs gave."""

    name: str
    ours: bool
    options: list[str]
    seconds: list[float] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)
    tests: list[list[tuple[float, float]]] = field(default_factory=list)  # of each run: s, accuracy
    missed: int = 0


def rows() -> list[Row]:
    two_bit = ["--type", "2bit", *demo.SETTINGS["2bit"]]
    return [
        Row("MXNet", False, []),
        Row("MXNet float16", False, ["--dtype", "float16"]),
        # MXNet's own kvstore refuses compression in a Trainer.
        Row("MXNet 2bit", False, [*two_bit, "--push-pull"]),
        Row("HiPress", True, []),
        Row("HiPress float16", True, ["--dtype", "float16"]),
        Row("HiPress 2bit", True, two_bit),
        Row("HiPress onebit", True, ["--type", "onebit"]),
        Row("HiPress 1bit", True, ["--type", "1bit"]),
    ]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", type=float, default=0.97, help="test accuracy, 0 to 1")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=15, help="at most; sets the schedule, too")
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--rate", default="1gbit")
    netns.add_dilation(parser)
    return parser.parse_args()


def train(row: Row, seed: int, args: argparse.Namespace, network: netns.ShapedNetwork) -> None:
    """One run to the target; adds its time to the row."""
    with tempfile.TemporaryDirectory(prefix="tta-") as folder:
        output = Path(folder) / "run.jsonl"
        command = [
            *(sys.executable, str(DIGITS / "train.py"), *row.options, "--output", str(output)),
            *("--kvstore", "dist_sync_hipress" if row.ours else "dist_sync"),
            *("--seed", str(seed), "--epochs", str(args.epochs), "--target", str(args.target)),
            *("--hidden", str(args.hidden), "--learning-rate", str(args.learning_rate)),
        ]
        jobs.run_kvstore_job(
            command, 4, 4, row.ours, network, env={"OMP_NUM_THREADS": "1"}, timeout=240
        )
        tests = demo.read_records(output)
    row.tests.append([(network.seconds(test["seconds"]), test["accuracy"]) for test in tests])
    last = tests[-1]
    if last["accuracy"] < args.target:
        row.missed += 1
    else:
        row.seconds.append(network.seconds(last["seconds"]))
        row.steps.append(last["step"])


def main() -> int:
    args = arguments()
    jobs.clean_up_when_terminated()
    console = Console(width=None if sys.stdout.isatty() else 120)
    if netns.available():
        console.print(netns.available())
        return 1
    table_rows = rows()
    machine = jobs.machine()
    with netns.ShapedNetwork(4, rate=args.rate, dilation=args.dilation) as network:
        for seed in args.seeds:
            for row in table_rows:
                train(row, seed, args, network)
                shown = f"{row.seconds[-1]:.2f} s" if row.seconds else "missed"
                console.print(f"[dim]seed {seed}, {row.name}: {shown}[/]")
    title = f"Seconds to {100 * args.target:g} % test accuracy, 4 nodes at {args.rate}, "
    title += f"dilation {args.dilation:g}, "
    table = Table(title=title + f"median of {len(args.seeds)} seeds", title_justify="left")
    table.add_column("")
    heads = ("seconds", "steps", "ms per step", "x MXNet", "x MXNet 2bit", "x HiPress float16")
    for head in (*heads, "missed"):
        table.add_column(head, justify="right")
    median = {row.name: statistics.median(row.seconds) for row in table_rows if row.seconds}
    for row in table_rows:
        if not row.seconds:
            table.add_row(row.name, *[""] * 6, str(row.missed))
            continue
        mine = median[row.name]
        peers = ("MXNet", "MXNet 2bit", "HiPress float16")
        per_step = 1e3 * sum(row.seconds) / sum(row.steps)
        table.add_row(
            row.name,
            f"{mine:.2f}",
            f"{statistics.median(row.steps):.0f}",
            f"{per_step:.0f}",
            *(f"{median[peer] / mine:.2f}" if peer in median else "" for peer in peers),
            str(row.missed or ""),
        )
    console.print(table)
    record = {
        "machine": machine,
        "target": args.target,
        "seeds": args.seeds,
        "hidden": args.hidden,
        "rate": args.rate,
        "dilation": args.dilation,
        "rows": [vars(row) for row in table_rows],
    }
    console.print(f"saved {jobs.save('time_to_accuracy', record)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
