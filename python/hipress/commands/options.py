"""Options that several commands share."""

from typing import Annotated

import typer

Profile = Annotated[
    str, typer.Option("--profile", help="sosp21, or a file that `hipress profile` wrote")
]
Type = Annotated[
    str, typer.Option("--type", help="one of the types in the profile; none: uncompressed")
]
Model = Annotated[
    str, typer.Option("--model", help="a known model, or a file of name,size lines")
]
