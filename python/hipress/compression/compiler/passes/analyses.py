"""Analyses for the backends: uses of vectors, buckets, merges, lazy states, rankings."""

from __future__ import annotations

from dataclasses import dataclass

from hipress.compression.compiler.ir.ir import (
    Function,
    Instr,
    IrNode,
    Loop,
    Program,
    ascend,
    backward,
)

_DRAWS = ("random", "random16")

# Vectors ------------------------------------------------------------------------------


def num_readers(function: Function, name: str) -> int:
    """Return how many instructions read a vector."""
    return sum(name in instr.reads for instr in function.instrs())


def only_elements(function: Function, sort: Instr) -> bool:
    """Return whether only single elements are read, while the source is unchanged."""
    target, source = sort.vec
    after = function.body[function.body.index(sort) + 1 :]
    users = [node for node in function.body if target in node.reads]
    if any(isinstance(node, Loop) or node.op != "element" for node in users):
        return False
    last = max((after.index(node) for node in users), default=0)
    return not any(source in node.writes for node in after[:last])


def unproven_indices(function: Function) -> list[str]:
    """Return the vectors of indices for scatter that are not known to be ascending and in range.

    A decoder checks them, and an encoder checks each before it writes.
    """
    vectors = function.vectors
    sizes = {node.vec[1]: vectors[node.vec[0]].size for node in function.operations("scatter")}
    return sorted(
        name for name, size in sizes.items() if not ascend(name, size, function.body, vectors)
    )


def spread_bits(function: Function) -> dict[str, Instr]:
    """Return the vectors of bits under masks, by name, with the instructions that spread them."""
    return {node.vec[0]: node for node in function.operations("unpack_where")}


def renewal(function: Function, state: str) -> Loop | None:
    """Return the loop that writes all of a state first, and reads it only before, or None.

    Until that loop the old state can lie in other memory than the new one.
    """
    first = next(iter(function.writers(state)), None)
    if not isinstance(first, Loop) or first.domain.op != "n" or first.guard is not None:
        return None
    uses = [instr.op for instr in first.body if state in instr.vec]
    stored = uses.index("store") if "store" in uses else 0
    return first if uses[stored:] == ["store"] else None


def used_after(function: Function, name: str, node: Loop, skipped: Loop | None) -> bool:
    """Return whether a node after this one uses a vector, but for one that is skipped."""
    later = function.body[function.body.index(node) + 1 :]
    return any(name in each.reads | each.writes for each in later if each is not skipped)


# Buckets: work that can be done bucket by bucket, so that a second pass finds its bucket cached -


def bucket_of(loop: Loop) -> Instr | None:
    """Return the parameter with the size of the loop's buckets, if all are the same."""
    bucketed = [instr.args[0] for instr in loop.ops("bucket_reduce", "bucket_load")]
    one = len({size.id for size in bucketed}) == 1
    return bucketed[0] if one and not loop.results else None


def bucket_group(function: Function, position: int) -> list[IrNode] | None:
    """Return a pass that reduces buckets and what follows up to a pass that reads them."""
    body = function.body
    first = body[position]
    made = {instr.vec[0] for instr in first.ops("bucket_reduce")}
    if not made or bucket_of(first) is None:
        return None
    size = function.vectors[next(iter(made))].size
    for end in range(position + 1, len(body)):
        node = body[end]
        if isinstance(node, Instr):
            if node.vec or node.uses & first.defines:
                return None
        elif node.domain is size and not node.results:
            if _needs_whole_tiles(function, node):  # a block's buckets begin anywhere
                return None
            made |= node.writes
        elif node.domain is first.domain and bucket_of(node) is bucket_of(first):
            anywhere = {name for instr in node.ops("load_at") for name in instr.vec}
            if anywhere & made or not node.reads & made:
                return None
            return body[position : end + 1]
        else:
            return None
    return None


def _needs_whole_tiles(function: Function, loop: Loop) -> bool:
    """Return whether a loop has packed codes or draws, whose tiles have fixed places."""
    return any(
        instr.op in _DRAWS or any(function.vectors[name].packed for name in instr.vec)
        for instr in loop.body
    )


def is_dense(function: Function) -> bool:
    """Return whether a decoder is one loop that writes the output from fields and bits under masks.

    One operation that does the same also counts.
    """
    if function.operations("unpack_floats"):
        return True
    if len(function.loops) != 1 or function.operations("scatter"):
        return False
    (loop,) = function.loops
    spread = spread_bits(function)
    if loop.results or loop.domain.op != "n" or (spread and bucket_of(loop) is not None):
        return False  # counted blocks of bits under a mask have the usual size
    loads = {name for instr in loop.body if instr.op != "store" for name in instr.vec}
    return len(loop.ops("store", "bucket_reduce")) == 1 and all(
        function.vectors[name].kind == "field" or name in spread for name in loads
    )


# Merge of several nodes' payloads into one sum: the definition for every backend ------
#
# In general sum[i] = (d0[i] + d1[i]) + d2[i] ... in float32, in the payloads' order. A sparse
# payload adds only where it has an element. The exception is a decoder that is one pass over a
# payload's fields and ends in `gradient = unit * level`, with `level` a vector of int and `unit` a
# number that does not depend on the payload. Its payloads are merged as unit * (sum of the levels):
# the levels are added as int32, converted to float32 and multiplied once. Passes make one pass of
# several, so this applies to an optimized program.


@dataclass
class Levels:
    """`loop` stores unit * level: `level` (i32) is made in it, `unit` (f32) before it."""

    loop: Loop
    level: Instr
    unit: Instr


def integer_levels(function: Function) -> Levels | None:
    """Return the integer levels by which a decoder's payloads are merged, or None."""
    others = [node for node in function.scalars if node.vec]
    if not is_dense(function) or any(node.op != "field_vector" for node in others):
        return None
    (loop,) = function.loops
    product = loop.stored(function.output)
    inside = {instr.id for instr in loop.body}
    if product is None or product.op != "mul" or product.id not in inside:
        return None
    for unit, level in (product.args, product.args[::-1]):
        if level.op == "cast" and level.id in inside and level.args[0].type == "i32":
            if level.args[0].id in inside and _independent(unit):
                return Levels(loop, level.args[0], unit)
    return None


def _independent(value: Instr) -> bool:
    """Return whether a number follows from the parameters alone."""
    if value.op in ("field", "load", "load_at", "bucket_load", "element", "index", "reduce"):
        return False
    return value.op not in _DRAWS and all(map(_independent, value.args))


# Lazy states: the next encode does the work of the last pass over memory --------------
#
# Where the first pass keeps x = gradient + residual in the residual (keep() in loops.py), and the
# last makes the new residual of it and of numbers that were only found out in between (onebit's
# means), the last is not done, and the numbers are saved instead. The next encode forms the
# residual while it reads x: one pass fewer, the same bits.

MAX_LAZY = 8


@dataclass
class LazyState:
    """Values from which `last` makes `state`: the stores of `first`, and `uniforms`."""

    state: str
    position: int
    first: Loop
    last: Loop
    x: Instr
    body: list[Instr]
    result: Instr
    uniforms: list[Instr]


def lazy_state(program: Program) -> LazyState | None:
    """Return the description of a program's lazy residual, or None if it cannot be lazy."""
    function = program.encode
    if function is None or "residual" not in program.states:
        return None
    state = "residual"
    writers = function.writers(state)
    readers = [node for node in function.body if state in node.reads]
    if len(writers) != 2 or readers[:1] != writers[:1] or readers[-1:] != writers[1:]:
        return None
    first, last = writers
    if not isinstance(first, Loop) or not isinstance(last, Loop):
        return None
    if {i.op for i in [*first.body, *last.body] if state in i.vec} != {"load", "store"}:
        return None
    if last.writes != {state} or last.reads != {state} or last.results:
        return None
    x, *others = last.ops("load")
    body = [instr for instr in last.body if instr.op not in ("load", "store")]
    inside = {instr.id for instr in last.body}
    outside = {
        arg.id: arg
        for instr in body
        for arg in instr.args
        if arg.id not in inside and arg.op != "const"
    }
    uniforms = list(outside.values())
    if len(uniforms) > MAX_LAZY or any(number.type not in ("f32", "bool") for number in uniforms):
        return None  # floats cannot hold them
    if others or any(instr.op in ("index", *_DRAWS) for instr in body):
        return None
    position, result = program.states.index(state), last.stored(state)
    return LazyState(state, position, first, last, x, body, result, uniforms)


# Rankings: `topk` in the pass that makes its values -----------------------------------
#
# The values are not stored. A sample of lines determines a key that somewhat more than k elements
# reach, and the pass collects those that do. If they are fewer than k, the values are made once
# more.


@dataclass(eq=False)
class Ranking:
    """Operation `topk` on the values that `loop` stores."""

    topk: Instr
    loop: Loop
    first: list[Instr]
    sample: Loop
    again: Loop


def rankings(function: Function, lazy: LazyState | None) -> dict[str, Ranking]:
    """Return rankings by the names of the vectors that need not be stored."""
    found: dict[str, Ranking] = {}
    for topk in function.operations("topk"):
        source, position = topk.vec[1], function.body.index(topk)
        vector = function.vectors[source]
        if num_readers(function, source) != 1 or (vector.elem, vector.kind) != ("f32", "temp"):
            continue
        writers = [loop for loop in function.loops if any(source in i.vec for i in loop.body)]
        if len(writers) != 1 or function.body.index(writers[0]) > position:
            continue
        (loop,) = writers
        if loop.guard is not None or any(i.op.startswith("bucket_") for i in loop.body):
            continue
        if lazy is not None and loop in (lazy.first, lazy.last):
            continue
        if any(loop is other.loop for other in found.values()):
            continue  # one loop collects the candidates of one ranking
        between = function.body[function.body.index(loop) + 1 : position]
        first, again = _scalars(topk.args[0], between), _again(function, loop, source)
        if first is not None and again is not None:
            store = next(i for i in loop.body if i.op == "store" and i.vec[0] == source)
            sample = Loop(loop.domain, [*backward(store.args[0], loop.body), store])
            if sample.ops(*_DRAWS):
                continue  # numbers are drawn for all elements of a tile, and a sample has few
            found[source] = Ranking(topk, loop, first, sample, again)
    return found


def _scalars(value: Instr, between: list[IrNode]) -> list[Instr] | None:
    """Return the instructions between that a number needs; None if some cannot be moved up."""
    found = backward(value, [node for node in between if isinstance(node, Instr)])
    needed = {value.id} | {arg.id for instr in found for arg in instr.args}
    if any(isinstance(node, Loop) and needed & node.defines for node in between):
        return None
    return None if any(instr.vec or instr.op == "field" for instr in found) else found


def _again(function: Function, loop: Loop, source: str) -> Loop | None:
    """Return a loop that makes the values from the results of `loop`, if these suffice."""
    vectors = function.vectors
    kept = {
        store.args[0].id: store.vec[0]
        for store in loop.ops("store")
        if store.vec[0] != source
        and vectors[store.vec[0]].elem == "f32"
        and vectors[store.vec[0]].needs is None
    }
    inside = {instr.id for instr in loop.body}
    copies: dict[int, Instr] = {}

    def copy(instr: Instr) -> Instr | None:
        if instr.id not in inside or instr.id in copies:
            return copies.get(instr.id, instr)
        if instr.id in kept:
            made = Instr("load", [], "f32", [kept[instr.id]])
        elif instr.op in (*_DRAWS, "bucket_load", "reduce") or loop.writes & set(instr.vec):
            return None
        else:
            args = [copy(arg) for arg in instr.args]
            if None in args:
                return None
            made = instr.copy(args)
        copies[instr.id] = made
        return made

    value = copy(loop.stored(source))
    if value is None:
        return None
    return Loop(loop.domain, [*copies.values(), Instr("store", [value], "none", [source])])
