"""`hipress codecs`: list of compression types."""

import json
from typing import Annotated

import typer
from typer import Argument

from hipress.cli import fail, options


def command(
    name: Annotated[str, Argument(help="only this type, with its parameters")] = "",
    as_json: options.AsJson = False,
) -> None:
    """List the compression types and their parameters."""
    from hipress.compression.compressor import codecs

    known = codecs()
    if name and name not in known:
        fail(f"there is no compression type {name!r}; there are: {', '.join(sorted(known))}")
    chosen = {name: known[name]} if name else dict(sorted(known.items()))
    if as_json:
        typer.echo(json.dumps([info._asdict() for info in chosen.values()], indent=2))
        return
    width = max(map(len, chosen))
    for info in chosen.values():
        typer.echo(f"{info.name:{width}}  {info.summary}")
        if name:
            typer.echo(info.doc.rstrip())
        elif info.params:
            typer.echo(f"{'':{width}}  parameters: {', '.join(info.params)}")
