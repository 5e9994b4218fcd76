"""`hipress bench`: measurement of the cost of synchronization on this network."""

import typer
from typer import Option

from hipress.topology import topologies

_TOPOLOGIES = topologies.either(topologies.names())

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _about() -> None:
    """Measure synchronization, compressed and uncompressed."""


@app.command()
def allreduce(
    first: str = Option("4", "-b", help="Bytes of the smallest array, such as 4 or 64K."),
    last: str = Option("64M", "-e", help="Bytes of the largest array, such as 1G."),
    factor: int = Option(2, "-f", help="From one size to the next."),
    dtype: str = Option("float", "-d", help="float, half or bfloat16."),
    iterations: int = Option(20, "-n", help="All-reduces that are timed."),
    warmup: int = Option(5, "-w", help="All-reduces before those."),
    compression: str = Option("maxmin", "--compression", "-c", help="See hipress codecs."),
    param: list[str] = Option([], "--param", "-p", help="NAME=VALUE, may be repeated."),  # noqa: B008
    topology: str = Option("ps", "--topology", "-t", help=_TOPOLOGIES),
) -> None:
    """All-reduce times on torch.distributed, in the form of nccl-tests' all_reduce_perf.

    torchrun --nproc-per-node=4 -m hipress bench allreduce -b 4 -e 1G -f 2 -d float -n 20 -w 5
    """
    from hipress.torch import bench

    params = dict(item.partition("=")[::2] for item in param)
    try:
        bench.run(
            first,
            last,
            factor,
            dtype,
            iterations,
            warmup,
            compression,
            params,
            topology,
            typer.echo,
        )
    except ValueError as error:
        typer.echo(f"hipress bench allreduce: {error}", err=True)
        raise typer.Exit(2) from None
