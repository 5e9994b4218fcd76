"""Runner of one benchmark: python -m benchmarks NAME [options]. Without a name, it lists them."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import typer

from harness import processes

SUBJECTS = {
    "pushpull": "kvstore.pushpull",
    "smallkeys": "kvstore.smallkeys",
    "trainer": "kvstore.trainer",
    "topologies": "graphs.topologies",
    "collisions": "graphs.collisions",
    "allreduce": "allreduce.sizes",
    "training": "training.steps",
    "fsdp": "training.fsdp",
    "convergence": "training.convergence",
    "each": "training.each",
    "rounding": "training.rounding",
    "feedback": "training.feedback",
    "quality": "training.quality",
    "diloco": "training.diloco",
    "diloco-rates": "training.rates",
    "sparseloco": "training.sparseloco",
    "transactions": "training.transactions",
    "elastic": "training.elastic",
    "survival": "training.survival",
    "faults": "training.faults",
    "accuracy": "accuracy.types",
    "time-to-accuracy": "accuracy.seconds",
    "picture": "accuracy.picture",
    "autoplan": "planning.autoplan",
    "simulation": "planning.simulation",
    "setups": "planning.setups",
    "fsdp-simulated": "planning.sharding",
    "paper": "paper.simulation",
    "codecs": "codecs.speed",
    "codec-bounds": "codecs.bounds",
    "codecs-lossless": "codecs.lossless",
    "codecs-entropy": "codecs.entropy",
    "codecs-cosines": "codecs.cosines",
    "effort": "codecs.effort",
    "cuda": "cuda.speed",
    "transport": "transport.speed",
    "longlinks": "transport.longlinks",
    "congestion": "transport.congestion",
    "all": "common.suite",
    "tables": "common.tables",
}


def summary(module: str) -> str:
    """Return the first line of a module's docstring, without importing the module."""
    path = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text())) or "").splitlines()[0]


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    if name not in SUBJECTS:
        for known, module in SUBJECTS.items():
            print(f"{known:18}{summary(module)}")
        sys.exit(f"there is no {name!r}" if name and not name.startswith("-") else 0)
    module = importlib.import_module(f"benchmarks.{SUBJECTS[name]}")
    processes.clean_up_when_terminated()
    app = typer.Typer(add_completion=False)
    app.command(help=re.sub(r"(?<=\S)\n(?=\S)", " ", module.__doc__))(module.main)
    app(args=sys.argv[2:], prog_name=f"python -m benchmarks {name}")


if __name__ == "__main__":
    main()
