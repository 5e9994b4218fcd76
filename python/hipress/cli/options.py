"""Options that several commands share."""

from typing import Annotated, Optional

from typer import Option

from hipress.topology import topologies

Profile = Annotated[str, Option("--profile", help="sosp21, or a file that `hipress profile` wrote")]
Bandwidth = Annotated[
    str, Option("--bandwidth", help="of a link, e.g. 10gbit, instead of the profile's")
]
Latency = Annotated[
    str, Option("--latency", help="of a message, e.g. 50us, instead of the profile's")
]
Threads = Annotated[
    Optional[int],  # noqa: UP045 (Python 3.9)
    Option("--threads", min=1, help="codec threads of a host, which is a machine of its own"),
]
Type = Annotated[str, Option("--type", help="one of the types in the profile; none: uncompressed")]
Topology = Annotated[str, Option("--topology", help=topologies.either(topologies.names()))]
DEFAULT_TOPOLOGY = topologies.default(0)
ComputeMs = Annotated[
    Optional[float],  # noqa: UP045 (Python 3.9)
    Option("--compute-ms", help="forward and backward pass of one device"),
]
AsJson = Annotated[bool, Option("--json", help="print JSON")]
Model = Annotated[str, Option("--model", help="a known model, or a file of name,size lines")]


def changes(bandwidth: str, latency: str = "", threads: Optional[int] = None) -> dict:  # noqa: UP045
    """Return the fields of a profile's cluster that these options replace."""
    from hipress.base import units

    found: dict = {}
    if bandwidth:
        found["bandwidth"] = units.rate(bandwidth)
    if latency:
        found["latency"] = units.seconds(latency)
    if threads:
        found.update(threads=threads, shared_hosts=False)
    return found


def sharing(threads: float, whose: str) -> str:
    """Return the message for profiles whose nodes all share one machine."""
    return (
        f"the profile's nodes shared one machine's processors, and so do {whose}: {threads:g} for "
        "all together; `--threads N` gives each N of its own"
    )
