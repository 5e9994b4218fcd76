"""Options that benchmarks share. A list is one argument with words separated by blanks."""

from __future__ import annotations

from typing import Annotated

import typer

Rate = Annotated[str, typer.Option(help="Of each link, as tc writes it.")]
Rates = Annotated[str, typer.Option(help="Of each link, as tc writes them.")]
Wan = Annotated[
    str,
    typer.Option(
        "--wan",
        help="A wide-area network: rate=100mbit,delay=20ms,loss=0.1%, and more (harness/wan.py).",
    ),
]
Models = Annotated[str, typer.Option("--models", help="The simulated or played ones.")]
Nodes = Annotated[int, typer.Option(min=1, help="Each a network namespace, or a process.")]
Rounds = Annotated[int, typer.Option(min=1, help="In which all variants take turns.")]
Seeds = Annotated[str, typer.Option(help="Of weights and data.")]
Only = Annotated[str, typer.Option(help="Regular expression of variants' names.")]


def _name(text: str) -> str:
    if "/" in text:
        raise typer.BadParameter("a name, and not a path: files go to output/benchmarks")
    return text.removesuffix(".json")


Output = Annotated[
    str, typer.Option(callback=_name, help="Name of the JSON file in output/benchmarks.")
]
Priority = Annotated[bool, typer.Option("--priority", help="Before this machine's other work.")]
Env = Annotated[str, typer.Option(help="NAME=VALUE ... for processes of HiPress.")]
Quick = Annotated[bool, typer.Option("--quick", help="As little as shows that it runs.")]
Dilation = Annotated[
    float,
    typer.Option(
        min=1,
        help="Links so many times slower, and times divided by it: as if each node had so many "
        "times as much of this machine's processors; as many as there are nodes gives each a "
        "machine of its own.",
    ),
]


def variables(env: str) -> dict[str, str]:
    """Return the environment variables that an option of type Env names."""
    return dict(pair.split("=", 1) for pair in env.split())
