"""Properties of vectors of indices that hold for any gradient and payload."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Instr, Loop, Vector, node_writes


def ascend(name: str, below: Instr, body: list, vectors: dict[str, Vector]) -> bool:
    """Return whether a vector has ascending indices from 0 to below a size.

    :param body: the nodes of a function up to where they are used, or all of them
    """
    for node in body:
        if name not in node_writes(node):
            continue
        if isinstance(node, Loop):
            return _of_others(name, below, node, body, vectors)
        if node.op == "random_indices":
            return node.attrs["run"] == 1 and (node.args[0] is below or below.op == "n")
        if node.op in ("unpack_ascending", "unpack_gaps"):
            return below.op == "n"  # other payloads are refused
        return node.op in ("compact", "topk") and vectors[node.vec[1]].size is below
    return False


def _of_others(name: str, below: Instr, loop: Loop, body: list, vectors: dict[str, Vector]) -> bool:
    """Return whether a loop gathers ascending indices at ascending indices."""
    value = next(i.args[0] for i in loop.body if i.op == "store" and i.vec[0] == name)
    if value.op != "load_at" or value.args[0].op != "load":
        return False
    source, at = value.vec[0], value.args[0].vec[0]
    if not ascend(at, vectors[source].size, body, vectors):
        return False
    return ascend(source, below, body, vectors)


def counts_buckets(size: Instr, domain: Instr, bucket: Instr) -> bool:
    """Return whether a size is (domain + bucket - 1) / bucket, in any order of the sum."""
    if size.op != "div" or size.args[1] is not bucket:
        return False
    terms: dict[int, int] = {}
    constant = _add_terms(size.args[0], 1, terms)
    wanted = {domain.id: 1, bucket.id: 1}
    return constant == -1 and {id_: times for id_, times in terms.items() if times} == wanted


def _add_terms(value: Instr, times: int, terms: dict[int, int]) -> int:
    """Count how often values are in a sum; return its constant."""
    if value.op in ("add", "sub"):
        right = times if value.op == "add" else -times
        left = _add_terms(value.args[0], times, terms)
        return left + _add_terms(value.args[1], right, terms)
    if value.op == "const":
        return times * value.attrs["value"]
    terms[value.id] = terms.get(value.id, 0) + times
    return 0
