"""Graph of waiting nodes and their reasons, from a job's dumps (:mod:`.debug`).

A node waits for messages in an iteration of a key, or in a call that other nodes must also make.
Following the waits key by key leads to a node that has not done its own part: it has not pushed,
has not made the call, computes, sends, or has no dump. That is a *cause*. A node that is a cause
may itself wait for another cause. If it does not, it is a *root*. Causes that wait for one another
are a cycle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from hipress.diagnostics.debug import Dump, Fetch, Iteration, KeyDump, WaitingCall

_CALLS = {
    "barrier": "come to the barrier of {}",
    "key": "begun to initialize key '{}'",
    "command": "answered a command",
}


@dataclass(frozen=True)
class Cause:
    """Missing action of a node for which other nodes wait."""

    node: str
    what: str
    """Rest of a sentence that begins with the node: "has not pushed iteration 7 of"."""
    key: str = ""
    """Key of the action, or an empty string."""


@dataclass(frozen=True)
class Wait:
    """Wait of one node for other nodes, in an iteration of a key or in a call."""

    node: str
    what: str
    """Key, or call."""
    iteration: int
    """Iteration, or 0 for a call."""
    seconds: float
    waits_for: list[str]
    causes: frozenset[Cause]


@dataclass
class WaitGraph:
    """All waits of a job."""

    nodes: Mapping[str, Dump]
    waits: list[Wait] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._any = max(self.nodes.values(), key=lambda dump: len(dump.ranks))
        self._keys = {
            node: {(key.number, key.channel): key for key in dump.keys}
            for node, dump in self.nodes.items()
        }
        for node, dump in self.nodes.items():
            for key in dump.keys:
                for iteration in key.iterations:
                    self._add_iteration(node, key, iteration)
            for fetch in dump.fetches:
                self._add_fetch(node, fetch)
            for call in dump.calls:
                self._add_call(node, call)
        # Oldest first. Nodes are dumped at different moments, so seconds are not comparable.
        begun = {node: dump.time for node, dump in self.nodes.items()}
        self.waits.sort(key=lambda w: (begun[w.node] - w.seconds, w.what, w.node))

    # Names.

    def label(self, node: str) -> str:
        """Return the users' name of a node."""
        return self._any.label(node)

    def labels(self, nodes: Iterable[str]) -> str:
        """Return the users' names as text: "rank 0, rank 1 and rank 3"."""
        return listed([self.label(node) for node in sorted(set(nodes), key=order)])

    @property
    def expected(self) -> list[str]:
        """Return all nodes that the job should have."""
        workers = [f"worker {rank}" for rank in range(self._any.workers)]
        return ["the scheduler", *(f"server {r}" for r in range(self._any.servers)), *workers]

    @property
    def absent(self) -> list[str]:
        """Return the nodes without a dump."""
        return [node for node in self.expected if node not in self.nodes]

    # Waits.

    def _add_iteration(self, node: str, key: KeyDump, iteration: Iteration) -> None:
        begun = iteration.pushed or not key.pushes
        if not begun or not (iteration.waits_for or iteration.arriving_from):
            return
        causes = frozenset(self._causes(node, key, iteration, set()))
        peers = sorted({*iteration.waits_for, *iteration.arriving_from}, key=order)
        self.waits.append(Wait(node, key.name, iteration.number, iteration.seconds, peers, causes))

    def _causes(self, node: str, key: KeyDump, iteration: Iteration, seen: set[str]) -> set[Cause]:
        """Return the ends of the chains of waits that begin at a node. Cycles have no end."""
        if node in seen:
            return set()
        seen.add(node)
        found = set()
        for peer in iteration.arriving_from:
            found.add(Cause(peer, f"is sending to {self.label(node)}", key.name))
        for peer in iteration.waits_for:
            found |= self._causes_at(peer, node, key, iteration.number, seen)
        return found

    def _causes_at(
        self, peer: str, node: str, key: KeyDump, number: int, seen: set[str]
    ) -> set[Cause]:
        """Return the reasons why ``peer`` has not sent the messages that ``node`` waits for."""
        dump = self.nodes.get(peer)
        of = f"iteration {number} of"
        if dump is None:
            return {Cause(peer, "has no dump")}
        theirs = self._key_at(peer, key.number, key.channel)
        if theirs is None:
            return {Cause(peer, "does not have key", key.name)}
        if theirs.locked:
            return {Cause(peer, "has a thread that is stuck in key", key.name)}
        if theirs.pushes and theirs.pushed < number:
            return {Cause(peer, f"has not pushed {of}", key.name)}
        for iteration in theirs.iterations:
            if iteration.number != number:
                continue
            if iteration.waits_for or iteration.arriving_from:
                return self._causes(peer, theirs, iteration, seen)
            if iteration.queued:
                oldest = theirs.iterations[0]
                return self._causes(peer, theirs, oldest, seen)
            if iteration.running:
                return {Cause(peer, f"computes ({iteration.running[0]}) for {of}", key.name)}
            if node in iteration.sending_to:
                return {Cause(peer, f"is sending to {self.label(node)} for {of}", key.name)}
        return {
            Cause(peer, f"has sent {self.label(node)} all (it is on its way) for {of}", key.name)
        }

    def _add_fetch(self, node: str, fetch: Fetch) -> None:
        name = self.nodes[node].name_of.get(fetch.key, str(fetch.key))
        causes: set[Cause] = set()
        for server in fetch.servers:
            if server not in self.nodes:
                causes.add(Cause(server, "has no dump"))
                continue
            theirs = self._key_at(server, fetch.key, order(node)[1])
            earlier = (
                [i for i in theirs.iterations if i.number <= fetch.iteration] if theirs else []
            )
            if earlier:
                causes |= self._causes(server, theirs, earlier[0], set())
            else:
                causes.add(Cause(server, "has not answered a pull of", name))
        about = f"a pull of {name}"
        self.waits.append(Wait(node, about, 0, fetch.seconds, fetch.servers, frozenset(causes)))

    def _key_at(self, node: str, number: int, channel: int) -> KeyDump | None:
        """Return a node's part of a key. Servers of asynchronous jobs have one part per worker."""
        keys = self._keys[node]
        return keys.get((number, channel)) or keys.get((number, 0))

    def _add_call(self, node: str, call: WaitingCall) -> None:
        if call.kind == "initial value":  # the first iteration of its key has more details
            return
        what = _CALLS.get(call.kind, call.kind).format(call.about)
        if call.kind == "start":  # missing nodes have no names yet; the scheduler knows them
            causes = set()
        elif call.kind == "command":
            causes = {Cause(call.about, f"has not {what} of {self.label(node)}")}
        else:
            late = self._not_there(call)
            causes = {
                Cause(peer, f"has not {what}" if peer in self.nodes else "has no dump")
                for peer in late
            } or self._unanswered(node, call)
        peers = sorted({cause.node for cause in causes}, key=order)
        about = f"{call.kind} {call.about}".rstrip()
        self.waits.append(Wait(node, about, 0, call.seconds, peers, frozenset(causes)))

    def _unanswered(self, node: str, call: WaitingCall) -> set[Cause]:
        """Return the nodes that have to answer a call that all nodes have made."""
        if call.kind == "barrier":
            peers, what = ["the scheduler"], f"has not released the barrier of {call.about}"
        else:
            servers = [f"server {rank}" for rank in range(self._any.servers)]
            peers = servers or ["worker 0"]
            what = f"has not confirmed key '{call.about}', which all workers have begun"
        return {
            Cause(peer, what if peer in self.nodes else "has no dump")
            for peer in peers
            if peer != node
        }

    def _not_there(self, call: WaitingCall) -> list[str]:
        """Return the nodes that have not made a call that other nodes have made."""
        scheduler = self.nodes.get("the scheduler")
        if scheduler and call.about in scheduler.barriers and call.kind == "barrier":
            return scheduler.barriers[call.about]
        servers_too = call.about.startswith("all nodes")
        late = []
        for node in self.expected[1:]:
            dump = self.nodes.get(node)
            if node.startswith("server") and not servers_too:
                continue
            if dump is not None and any(
                (theirs.kind, theirs.about) == (call.kind, call.about) for theirs in dump.calls
            ):
                continue
            if dump is not None and call.kind == "key" and call.about in dump.name_of.values():
                continue  # its call has ended, and the answers of other nodes are in transit
            late.append(node)
        return late

    # Causes.

    def roots(self) -> list[set[str]]:
        """Return the sets of nodes that wait for no others, most waited for first."""
        after: dict[str, set[str]] = defaultdict(set)
        for wait in self.waits:
            after[wait.node] |= {c.node for c in wait.causes} - {wait.node}
        reach = {node: self._reach(node, after) for node in {*after, *_targets(after)}}
        found: list[set[str]] = []
        for node in sorted(_targets(after), key=order):
            circle = {other for other in reach[node] if node in reach[other]} | {node}
            if reach[node] <= circle and circle not in found:
                found.append(circle)
        waiting = {min(group): sum(1 for node in reach if reach[node] & group) for group in found}
        return sorted(found, key=lambda group: (-waiting[min(group)], min(map(order, group))))

    @staticmethod
    def _reach(node: str, after: Mapping[str, set[str]]) -> set[str]:
        found: set[str] = set()
        todo = [node]
        while todo:
            new = after.get(todo.pop(), set()) - found
            found |= new
            todo += new
        return found

    def circles(self) -> list[tuple[str, int, list[str]]]:
        """Return iterations of keys whose waits form a cycle: (key, iteration, nodes)."""
        found: dict[tuple[str, int], list[str]] = defaultdict(list)
        for wait in self.waits:
            if wait.iteration and not wait.causes:
                found[wait.what, wait.iteration].append(wait.node)
        return [(*about, nodes) for about, nodes in found.items()]

    def sentences(self) -> list[str]:
        """Return a sentence for each node that causes waits; empty if no node waits."""
        found = []
        scheduler = self.nodes.get("the scheduler")
        if scheduler and scheduler.missing:
            found.append(f"the job has not started: it waits for {scheduler.missing}")
        for group in self.roots():
            if len(group) == 1:
                found.append(self._blame(*group))
            else:
                found.append(
                    f"{self.labels(group)} wait for one another: "
                    + "; ".join(self._blame(node, group) for node in sorted(group, key=order))
                )
        for key, iteration, nodes in self.circles():
            found.append(
                f"{self.labels(nodes)} wait in a circle for messages of iteration {iteration} of "
                f"'{key}', and no node is late: this is a fault of HiPress"
            )
        return found

    def _blame(self, node: str, among: Iterable[str] | None = None) -> str:
        """Return a sentence about a node's missing actions and the nodes that wait for it."""
        waiting: dict[Cause, set[str]] = defaultdict(set)
        for wait in self.waits:
            if among is not None and wait.node not in among:
                continue
            for cause in sorted(wait.causes, key=lambda cause: (cause.what, cause.key)):
                if cause.node == node and (wait.node != node or not cause.key):
                    waiting[cause].add(wait.node)
        by_what: dict[str, list[Cause]] = defaultdict(list)
        for cause in waiting:
            by_what[cause.what].append(cause)
        parts = []
        for what, causes in by_what.items():
            names = [cause.key for cause in causes if cause.key]
            keys = f" '{names[0]}'" if names else ""
            if len(names) > 1:
                keys += f" and of {len(names) - 1} more key{'s' if len(names) > 2 else ''}"
            parts.append(f"{what}{keys}")
        everybody = set().union(*waiting.values()) - {node}
        verb = "waits" if len(everybody) == 1 else "wait"
        return f"{self.label(node)} {listed(parts)}; {self.labels(everybody)} {verb} for it"


def listed(words: list[str]) -> str:
    """Return words as text: "a, b and c"."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def order(node: str) -> tuple[str, int]:
    """Return a sort key of node names: worker 2 is before worker 10."""
    role, _, number = node.rpartition(" ")
    return role, int(number) if number.isdigit() else 0


def _targets(after: Mapping[str, set[str]]) -> set[str]:
    return set().union(*after.values()) if after else set()
