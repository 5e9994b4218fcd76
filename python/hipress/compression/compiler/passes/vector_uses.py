"""Uses of vectors in a function, as far as a backend can optimize them."""

from __future__ import annotations

from hipress.compression.compiler.ir.indices import ascend
from hipress.compression.compiler.ir.ir import Function, Instr, Loop, node_reads, node_writes, reads


def operations(function: Function, *ops: str) -> list[Instr]:
    """Return the function's instructions of these operations, outside of loops."""
    return [node for node in function.body if isinstance(node, Instr) and node.op in ops]


def num_readers(function: Function, name: str) -> int:
    return sum(name in reads(instr) for instr in function.instrs())


def filter_masks(function: Function) -> dict[str, Instr]:
    """Return the masks that only a filter reads, with that filter."""
    filters = operations(function, "compact")
    return {node.vec[1]: node for node in filters if num_readers(function, node.vec[1]) == 1}


def single_elements(function: Function) -> dict[str, str]:
    """Return sorted vectors of which only one element is read, with their sources."""
    elements = {instr.vec[0] for instr in operations(function, "element")}
    return {
        node.vec[0]: node.vec[1]
        for node in operations(function, "sort")
        if node.vec[0] in elements and num_readers(function, node.vec[0]) == 1
    }


def only_elements(function: Function, sort: Instr) -> bool:
    """Return whether only single elements of a sorted vector are read while its source is
    unchanged."""
    target, source = sort.vec
    after = function.body[function.body.index(sort) + 1 :]
    users = [node for node in function.body if target in node_reads(node)]
    if any(isinstance(node, Loop) or node.op != "element" for node in users):
        return False
    last = max((after.index(node) for node in users), default=0)
    return not any(source in node_writes(node) for node in after[:last])


def unproven_indices(function: Function) -> list[str]:
    """Return the vectors of indices for scatter that are not known to be ascending and in range.

    A decoder checks them, and an encoder checks each before it writes.
    """
    scatters = operations(function, "scatter")
    sizes = {node.vec[1]: function.vectors[node.vec[0]].size for node in scatters}
    return sorted(
        name
        for name, size in sizes.items()
        if not ascend(name, size, function.body, function.vectors)
    )


def scatters_output(function: Function) -> bool:
    """Return whether a payload may contain only some elements of the gradient."""
    return any(node.vec[0] == function.output for node in operations(function, "scatter"))


def sampled_indices(function: Function) -> set[str]:
    """Return the vectors of indices that are runs of neighbors."""
    return {n.vec[0] for n in operations(function, "random_indices") if n.attrs["run"] > 1}


def spread_bits(function: Function) -> dict[str, Instr]:
    """Return the vectors of bits under masks, by name, with the instructions that spread them."""
    return {node.vec[0]: node for node in operations(function, "unpack_where")}


def renewal(function: Function, state: str) -> Loop | None:
    """Return the first node that writes a state, if it is a loop that writes all of it, and
    reads it, if it does, before it writes: until then the old one can lie in other memory than
    the new."""
    first = next((node for node in function.body if state in node_writes(node)), None)
    if not isinstance(first, Loop) or first.domain.op != "n" or first.guard is not None:
        return None
    uses = [instr.op for instr in first.body if state in instr.vec]
    stored = uses.index("store") if "store" in uses else 0
    return first if uses[stored:] == ["store"] else None


def used_after(function: Function, name: str, node: Loop, skipped: Loop | None) -> bool:
    """Return whether a node after this one reads or writes a vector, but for one that is
    skipped."""
    later = function.body[function.body.index(node) + 1 :]
    return any(
        name in node_reads(each) | node_writes(each) for each in later if each is not skipped
    )
