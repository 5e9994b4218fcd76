"""Accuracy with each compression type: the demo's network, trained with several seeds.

Data, network, learning rate and epochs are the same for all types; 4 workers and 2 servers on
loopback. The verdict: every compressed run must end within 1 point of the uncompressed run with its
seed.
"""

from __future__ import annotations

import statistics
from typing import Annotated

import typer

from benchmarks.accuracy import digits
from benchmarks.common.options import Quick, Seeds
from benchmarks.common.results import Record, console

LIMIT = 1.0  # points


def main(
    seeds: Seeds = "0 1 2",
    epochs: int = 15,
    types: Annotated[str, typer.Option(help="Default: all that the library has.")] = "",
    quick: Quick = False,
) -> None:
    if quick:
        seeds, epochs, types = "0", 2, types or "2bit"
    record = Record("accuracy", locals())
    kinds = types.split() or digits.demo.available_types()
    kinds = kinds if "none" in kinds else ["none", *kinds]
    runs: dict[str, list[dict]] = {kind: [] for kind in kinds}
    for seed in seeds.split():
        for kind, found in runs.items():
            options = ["--type", kind, "--seed", seed, "--epochs", str(epochs)]
            options += digits.demo.SETTINGS.get(kind, [])
            records, weights = digits.train(options, servers=2)
            found.append({**records[-1], "weights": weights})
            console.print(f"[dim]seed {seed}, {kind}: {100 * found[-1]['accuracy']:.2f} %[/]")
    rows, cells = [], []
    for kind, found in runs.items():
        reached = [100 * run["accuracy"] for run in found]
        gaps = [mine - 100 * base["accuracy"] for mine, base in zip(reached, runs["none"])]
        worst = max(gaps, key=abs)
        wire = [run["pushed_bytes"] + run["pulled_bytes"] for run in (found[0], runs["none"][0])]
        same = all(run["weights"] == 1 for run in found)
        holds = abs(worst) <= LIMIT and same
        rows.append(
            {
                "type": kind,
                "accuracy": reached,
                "worst_difference": worst,
                "holds": holds,
                "workers_bit_identical": same,
                "bytes_ratio": wire[1] / wire[0],
            }
        )
        line = [kind, *(f"{f(reached):.2f}" for f in (statistics.mean, min, max))]
        if kind != "none":
            line += [f"{worst:+.2f}", "yes" if holds else "NO", f"1/{wire[1] / wire[0]:.1f}"]
        cells.append([*line, *[""] * (7 - len(line))])
    heads = ["type", "mean", "min", "max", "worst difference", "within 1 point", "bytes"]
    record.table(heads, cells, f"Test accuracy after {epochs} epochs, seeds {seeds}, in %")
    record["rows"] = rows
    record.save()
    raise typer.Exit(not all(row["holds"] for row in rows))
