"""Does compression cost accuracy? Trains the demo's network with every type over several seeds.

Same data, network, learning rate and epochs for all types; 4 workers and 2 servers on loopback.
The verdict: every compressed run must end within 1 point of the uncompressed run of its seed.

    python benchmarks/accuracy.py
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

import jobs

DIGITS = jobs.ROOT / "examples" / "digits"
sys.path[:0] = [str(DIGITS), str(jobs.ROOT / "python")]

import demo  # noqa: E402

LIMIT = 1.0  # points


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--types", nargs="+", help="default: all that the library has")
    return parser.parse_args()


def train(kind: str, seed: int, epochs: int) -> dict:
    """One run; its last epoch's record, with ``weights``: how many different ones workers had."""
    with tempfile.TemporaryDirectory(prefix="hipress-accuracy-") as folder:
        output = Path(folder) / "run.jsonl"
        command = [sys.executable, str(DIGITS / "train.py"), "--type", kind, "--seed", str(seed)]
        command += ["--epochs", str(epochs), "--output", str(output)]
        jobs.run_kvstore_job(
            command + demo.SETTINGS.get(kind, []), 4, 2, ours=True, timeout=300,
            env={"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        last = demo.read_records(output)[-1]
        return {**last, "weights": len(set(demo.read_weights(output, 4)))}


def main() -> int:
    args = arguments()
    jobs.clean_up_when_terminated()
    console = Console(width=None if sys.stdout.isatty() else 120)
    types = args.types or demo.available_types()
    if "none" not in types:
        types = ["none", *types]
    machine = jobs.machine()
    runs: dict[str, list[dict]] = {kind: [] for kind in types}
    for seed in args.seeds:
        for kind in types:
            runs[kind].append(train(kind, seed, args.epochs))
            reached = 100 * runs[kind][-1]["accuracy"]
            console.print(f"[dim]seed {seed}, {kind}: {reached:.2f} %[/]")
    table = Table(
        title=f"Test accuracy after {args.epochs} epochs, seeds {args.seeds}, in %",
        title_justify="left",
    )
    table.add_column("type")
    for head in ("mean", "min", "max", "worst difference", "within 1 point", "bytes vs none"):
        table.add_column(head, justify="right")
    rows = []
    for kind, found in runs.items():
        reached = [100 * run["accuracy"] for run in found]
        gaps = [mine - 100 * base["accuracy"] for mine, base in zip(reached, runs["none"])]
        worst = max(gaps, key=abs)
        wire = [run["pushed_bytes"] + run["pulled_bytes"] for run in (found[0], runs["none"][0])]
        same = all(run["weights"] == 1 for run in found)
        row = {
            "type": kind,
            "accuracy": [round(value, 3) for value in reached],
            "worst_difference": round(worst, 3),
            "holds": abs(worst) <= LIMIT and same,
            "workers_bit_identical": same,
            "bytes_ratio": round(wire[1] / wire[0], 2),
        }
        rows.append(row)
        table.add_row(
            kind,
            *(f"{f(reached):.2f}" for f in (statistics.mean, min, max)),
            "" if kind == "none" else f"{worst:+.2f}",
            "" if kind == "none" else ("yes" if row["holds"] else "NO"),
            "" if kind == "none" else f"1/{row['bytes_ratio']:.1f}",
        )
    console.print(table)
    record = {"machine": machine, "epochs": args.epochs, "seeds": args.seeds, "rows": rows}
    path = jobs.save("accuracy", record)
    console.print(f"saved {path}")
    return 0 if all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
