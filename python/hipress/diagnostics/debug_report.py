"""Text report of the waiting nodes of a job (:mod:`hipress.diagnostics.wait_graph`)."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hipress.diagnostics.wait_graph import Wait, WaitGraph, order

if TYPE_CHECKING:
    from hipress.diagnostics.debug import Dump
    from hipress.diagnostics.elastic_job import ElasticJob

_ASKED = {"the process got the signal that asks for it", "the program asked for it"}
"""Reasons of dumps that are no failures."""
_MAX_SECONDS_BETWEEN_DUMPS = 5.0
"""Seconds between dumps of one job from which they count as different moments."""


def _console() -> Console:
    # A file or a pipe has no width.
    return Console(highlight=False, width=None if sys.stdout.isatty() else 140)


def show(nodes: Mapping[str, Dump], now: float, rows: int, events: int) -> None:
    """Print the report of a job: ``rows`` waits, and each node's last ``events`` events."""
    console = _console()
    graph = WaitGraph(nodes)
    for line in lines(graph, now):
        console.print(escape(line), soft_wrap=True)
    if graph.waits:
        table, count = _waits(graph, rows)
        console.print(table)
        if count > rows:
            console.print(f"and {count - rows} more: --rows lists them\n")
    console.print(_nodes(graph, now))
    for node, dump in sorted(nodes.items(), key=lambda pair: order(pair[0])) if events else ():
        if dump.events:
            console.print(_events(graph.label(node), dump, events))


def show_elastic(job: ElasticJob, now: float, rows: int, events: int) -> None:
    """Print an elastic job, and then the native job of its present view, as :func:`show` does."""
    console = _console()
    for line in (job.headline(now), *job.sentences()):
        console.print(escape(line), soft_wrap=True)
    columns = ("slot", "rank", "process", "works in view", "completed step", "waits for")
    table = _table(f"workers, by their rank in view {job.epoch}" if job.epoch else "", *columns)
    for row in job.rows():
        numbers = (row.slot, row.rank, row.process, row.view or -1, row.completed)
        texts = ["" if number == -1 else str(number) for number in numbers]
        table.add_row(*map(escape, (*texts, row.waits_for)))
    console.print(table)
    if job.older:
        verb = "is" if job.older == 1 else "are"
        console.print(f"{_count(job.older, 'dump')} of nodes of older views {verb} left out")
    if job.nodes:
        console.print(f"the native job of view {job.view_of_nodes}:")
        show({node.node: node for node in job.nodes}, now, rows, events)


def lines(graph: WaitGraph, now: float) -> list[str]:
    """Return the sentences before the tables."""
    dumps = list(graph.nodes.values())
    times = [dump.time for dump in dumps]
    any_dump = dumps[0]
    servers = f" and {_count(any_dump.servers, 'server')}" if any_dump.servers else ""
    found = [
        f"job at {any_dump.job}: {_count(any_dump.workers, 'worker')}{servers}; "
        f"{_count(len(dumps), 'dump')}, {now - max(times):.0f} s old"
    ]
    deaths = sorted({what for dump in dumps for what in dump.dead.values()})
    why = {dump.reason for dump in dumps} - _ASKED | {dump.failure for dump in dumps}
    failures = sorted(why - {"", *deaths})
    found += [f"a node has died: {what}" for what in deaths]
    found += [f"the job has failed: {failure}" for failure in failures]
    nothing = "no node is late" if graph.waits else "no node waits for another node"
    found += graph.sentences() or [nothing]
    if graph.absent:
        verb = "is" if len(graph.absent) == 1 else "are"
        found.append(f"of {graph.labels(graph.absent)} there {verb} no dump")
    if max(times) - min(times) > _MAX_SECONDS_BETWEEN_DUMPS:
        found.append(
            f"these dumps were made within {max(times) - min(times):.0f} s, and show different "
            "moments"
        )
    return found


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    for column in columns:
        table.add_column(column, justify="right" if column in ("iteration", "seconds") else "left")
    return table


def _waits(graph: WaitGraph, rows: int) -> tuple[Table, int]:
    """Return a table of waits, a row per iteration or call, and the number of all rows."""
    table = _table("waits", "in", "iteration", "seconds", "waiting node", "because")
    together: dict[tuple[str, int], list[Wait]] = {}
    for wait in graph.waits:
        together.setdefault((wait.what, wait.iteration), []).append(wait)
    for (what, iteration), waits in list(together.items())[:rows]:
        whom = [
            f"{graph.label(wait.node)} for {graph.labels(wait.waits_for)}"
            for wait in sorted(waits, key=lambda wait: wait.node)
            if wait.waits_for
        ]
        causes = {cause for wait in waits for cause in wait.causes}
        because = {f"{graph.label(c.node)} {c.what.removesuffix(' of')}" for c in causes}
        table.add_row(
            escape(what),
            str(iteration or ""),
            f"{waits[0].seconds:.1f}",
            "\n".join(whom),
            escape("\n".join(sorted(because))),
        )
    return table, len(together)


def _nodes(graph: WaitGraph, now: float) -> Table:
    columns = ("node", "process", "keys under way", "in calls", "silent longest", "last event")
    table = _table("nodes", *columns)
    for node, dump in sorted(graph.nodes.items(), key=lambda pair: order(pair[0])):
        busy = sum(1 for key in dump.keys if key.iterations)
        silent = max(dump.silent.items(), key=lambda pair: pair[1], default=None)
        calls = [f"{call.kind} {call.about}".rstrip() for call in dump.calls]
        table.add_row(
            graph.label(node),
            escape(f"{dump.pid} on {dump.host}"),
            f"{busy} of {len(dump.keys)}" if dump.keys else "",
            escape("\n".join(calls)),
            f"{graph.label(silent[0])}, {silent[1]:.1f} s" if silent else "",
            escape(_event(dump, -1)) if dump.events else "",
        )
    return table


def _event(dump: Dump, at: int) -> str:
    event = dump.events[at]
    name = dump.name_of.get(event.key, str(event.key))
    peer = f" ({dump.label(event.peer)})" if event.peer else ""
    return (
        f"{dump.time - event.time:.3f} s before: {event.op} {event.state}{peer}, '{name}' "
        f"iteration {event.iteration} partition {event.partition}"
    )


def _events(label: str, dump: Dump, count: int) -> Table:
    table = _table("", f"last events of {label}")
    for at in range(-min(count, len(dump.events)), 0):
        table.add_row(escape(_event(dump, at)))
    return table
