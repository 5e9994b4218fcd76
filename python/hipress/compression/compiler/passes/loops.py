"""Changes of loops: forwarding, fusion, and reuse of states."""

from __future__ import annotations

from hipress.compression.compiler.ir.ir import Function, Instr, IrNode, Loop, backward, clone

_REPEATABLE = 64  # instructions
_DRAWS = ("random", "random16")
_ELSEWHERE = ("load_at", "bucket_load")
_PLAIN = ("f32", "i32", "u32")

# Forwarding: a loop that reads v[i] computes it itself, where v's own loop is simple to repeat.
#
# `x = residual + gradient` read by three reductions and a pack becomes an addition in each of them;
# the loop that filled x is then dead. Nothing is repeated that changes its value: not past a store
# to a vector that it reads, not into a loop that stores to one of which it reads other elements,
# and not out of float16 or bfloat16, which round.


def forward(function: Function) -> None:
    """Forward within one function, in place."""
    for position, loop in enumerate(function.body):
        if not isinstance(loop, Loop):
            continue
        body: list[Instr] = []
        mapping: dict[int, Instr] = {}
        stored: set[str] = set()
        for instr in loop.body:
            instr.args = [mapping.get(arg.id, arg) for arg in instr.args]
            found = None
            if instr.op == "load" and instr.vec[0] not in stored:
                found = _repeated(function, position, loop, instr.vec[0])
            elif instr.op == "load_at" and not stored:
                found = _gathered(function, position, instr)
            if found is not None:
                copies, mapping[instr.id] = found
                body += copies
                continue
            if instr.op == "store":
                stored.add(instr.vec[0])
            body.append(instr)
        loop.body = body


def _producer(
    function: Function, position: int, name: str
) -> tuple[Loop, Instr, list[Instr], set[str]] | None:
    """Return the loop that makes a temp, its value, the part that computes it, and what that reads.

    None if the loop is not simple to repeat at this position.
    """
    vector = function.vectors[name]
    if vector.kind != "temp" or vector.elem not in _PLAIN and not vector.packed:
        return None
    written: set[str] = set()
    for earlier in reversed(function.body[:position]):
        written |= earlier.writes
        if name in earlier.writes:
            value = earlier.stored(name) if isinstance(earlier, Loop) else None
            if value is None:
                return None
            part = backward(value, earlier.body)
            needed = {vec for instr in part for vec in instr.reads}
            simple = len(part) <= _REPEATABLE and not needed & written
            return (earlier, value, part, needed) if simple else None
    return None


def _repeated(
    function: Function, position: int, loop: Loop, name: str
) -> tuple[list[Instr], Instr] | None:
    """Return (instructions, value) that compute element i of a temp at this position, or None."""
    found = _producer(function, position, name)
    if found is None or found[0].domain is not loop.domain:
        return None
    _, value, part, needed = found
    elsewhere = {vec for instr in part if instr.op != "load" for vec in instr.reads}
    if elsewhere & loop.writes:
        return None  # its other elements may be written before they are read
    if needed & loop.writes and _reads_after_write(loop, needed):
        return None
    mapping: dict[int, Instr] = {}
    copies = clone(part, mapping)
    return copies, mapping.get(value.id, value)


def _gathered(function: Function, position: int, gather: Instr) -> tuple[list[Instr], Instr] | None:
    """Return (instructions, value) that compute v[at] of a temp at this position, or None.

    For a few elements of a vector that is not in memory otherwise, as a sample is.
    """
    name, at = gather.vec[0], gather.args[0]
    vectors = function.vectors
    found = _producer(function, position, name)
    if found is None or vectors[name].packed:
        return None
    if at.op != "load" or not _indexes(function, at.vec[0], vectors[name].size):
        return None
    _, value, part, needed = found
    if not part or any(vectors[vec].elem not in _PLAIN for vec in needed):
        return None
    if any(instr.op in (*_DRAWS, "bucket_load") for instr in part):
        return None
    mapping = {instr.id: at for instr in part if instr.op == "index"}
    copies = clone([instr for instr in part if instr.op != "index"], mapping)
    for copy in copies:
        if copy.op == "load":
            copy.op, copy.args = "load_at", [at]
    return copies, mapping[value.id]


def _indexes(function: Function, name: str, size: Instr) -> bool:
    """Return whether a vector holds indices that are within `size` elements."""
    for node in function.operations("random_indices", "compact", "topk"):
        if node.vec[0] == name:
            drawn = node.op == "random_indices"
            return (node.args[0] if drawn else function.vectors[node.vec[1]].size) is size
    return False


def _reads_after_write(loop: Loop, needed: set[str]) -> bool:
    """Return whether a store to one of these vectors could precede the forwarded load."""
    seen_store = False
    for instr in loop.body:
        if instr.writes & needed:
            seen_store = True
        elif instr.op == "load" and seen_store:
            return True
    return False


# Fusion: loops over the same elements become one, so that memory is read once.
#
# Reductions over one input become one pass; so do map, pack and the update of the residual. A loop
# moves up to an earlier one (or an earlier one down to it) if nothing between depends on the order.


def fuse(function: Function) -> None:
    """Fuse all loops that can be fused in one function, in place."""
    while any(_fuse_into_earlier(function, later) for later in range(len(function.body))):
        pass


def _fuse_into_earlier(function: Function, later: int) -> bool:
    """Merge body[later] with an earlier loop, if there is one."""
    body = function.body
    second = body[later]
    if not isinstance(second, Loop):
        return False
    # A vector is allocated before the loop that writes it, so its size must be known there.
    sizes = {function.vectors[name].size.id for name in second.writes}
    for earlier in range(later - 1, -1, -1):
        first = body[earlier]
        if not isinstance(first, Loop) or not _fusible(first, second):
            continue
        if _left_out(function, first) != _left_out(function, second):
            if _scatters(function) or first.results or second.results:
                continue
        between = body[earlier + 1 : later]
        sized = not any(sizes & node.defines for node in between)
        if sized and not any(_depends(second, node) for node in between):
            # Nodes in between may define values that the second loop does not use.
            del body[later]
        elif not any(_depends(node, first) for node in between):
            body[later] = first
            del body[earlier]
        else:
            continue
        first.body += second.body
        return True
    return False


def _left_out(function: Function, loop: Loop) -> bool:
    """Return whether a decoder skips a loop when it only checks, or adds to the output."""
    return function.kind == "decode" and function.output in loop.writes


def _scatters(function: Function) -> bool:
    return any(instr.vec[0] == function.output for instr in function.operations("scatter"))


def _fusible(first: Loop, second: Loop) -> bool:
    """Return whether element i of the second loop needs only element i of the first."""
    if first.domain is not second.domain or second.uses & first.defines:
        return False
    reduced = [loop.ops("bucket_reduce") for loop in (first, second)]
    buckets = {instr.args[0].id for instrs in reduced for instr in instrs}
    if len(buckets) > 1 or (buckets and (first.results or second.results)):
        return False
    for one, other, made in ((first, second, reduced[0]), (second, first, reduced[1])):
        anywhere = {name for instr in one.ops(*_ELSEWHERE) for name in instr.vec}
        if anywhere & other.writes or {instr.vec[0] for instr in made} & other.reads:
            return False
    return True


def _depends(later: IrNode, earlier: IrNode) -> bool:
    """Return whether `later` must stay after `earlier`."""
    return bool(
        later.uses & earlier.defines
        or later.writes & (earlier.reads | earlier.writes)
        or later.reads & earlier.writes
        or later.effect
        and earlier.effect
    )


# Reuse of states: a repeated computation is stored in a state that is overwritten anyway.
#
# `x = residual + gradient` is forwarded into each loop that reads x, and each of them would read
# both vectors again. Suppose that a later loop overwrites the residual, and that the loops after
# the first one need only x of the old one. Then the first loop stores x in its place, and later
# loops read one vector. A store that depends on no result of the loops in between then moves up to
# the first loop, which has read its inputs. The last loop is then often a function of the residual
# alone, and a backend can leave it to the next encode (LazyState in analyses.py).


def keep(function: Function) -> None:
    """Keep values in states, in one function, in place."""
    for name, vector in function.vectors.items():
        if vector.kind == "state" and vector.needs is None:
            _keep_in(function, name)


def _keep_in(function: Function, state: str) -> None:
    body = function.body
    last = next((at for at, node in enumerate(body) if state in node.writes), 0)
    readers = [at for at, node in enumerate(body[: last + 1]) if _loads(node, state)]
    if len(readers) < 2:
        return
    first, later = body[readers[0]], [body[at] for at in readers[1:]]
    for node in (first, body[last]):
        if not isinstance(node, Loop) or node.domain is not first.domain:
            return
        if any(instr.op.startswith("bucket_") for instr in node.body):
            return  # done bucket by bucket, in the cache
    if any(loop.domain is not first.domain for loop in later):
        return
    if any(_reaches_elsewhere(node, state) for node in body[readers[0] : last + 1]):
        return
    written = {name for node in body[readers[0] : last] for name in node.writes}
    for x in reversed(first.body):
        made = backward(x, first.body)
        sources = {name for instr in made for name in instr.vec}
        elsewhere = any(instr.op in (*_ELSEWHERE, *_DRAWS) for instr in made)
        if x.type != "f32" or x.op in ("load", "reduce") or elsewhere:
            continue
        if state not in sources or len(sources) < 2 or sources & written:
            continue
        copies = [{i.id for i in loop.body if _same(x, i, first.body)} for loop in later]
        if all(_enough(loop, state, known) for loop, known in zip(later, copies)):
            # Right after x, so that it needs no register up to the end; all loads are before.
            loads = [i for i in first.body if i.op == "load" and i.vec == [state]]
            at = max(first.body.index(instr) for instr in (x, *loads))
            first.body.insert(at + 1, Instr("store", [x], vec=[state]))
            for loop, known in zip(later, copies):
                load = Instr("load", [], "f32", [state])
                for instr in loop.body:
                    instr.args = [load if arg.id in known else arg for arg in instr.args]
                loop.body.insert(0, load)
            return


def _loads(node: IrNode, name: str) -> bool:
    return any(instr.op == "load" and instr.vec == [name] for instr in node.body)


def _reaches_elsewhere(node: IrNode, name: str) -> bool:
    """Return whether other elements of a vector are used than that of a loop's iteration."""
    return any(name in i.vec and i.op not in ("load", "store") for i in node.body)


def _same(one: Instr, two: Instr, body: list[Instr]) -> bool:
    """Return whether a value of `body`, and one of another loop, are the same computation."""
    if one.id == two.id:
        return True
    if (one.op, one.type, one.vec, one.attrs) != (two.op, two.type, two.vec, two.attrs):
        return False
    if len(one.args) != len(two.args) or not any(one is instr for instr in body):
        return False
    return all(_same(a, b, body) for a, b in zip(one.args, two.args))


def _enough(loop: Loop, state: str, known: set[int]) -> bool:
    """Return whether a loop needs no element of a state other than these values."""
    inside = {instr.id for instr in loop.body}
    seen: set[int] = set()
    todo = loop.ops("store", "reduce", "bucket_reduce")
    while todo:
        instr = todo.pop()
        if instr.id in seen or instr.id in known or instr.id not in inside:
            continue
        if instr.op == "load" and instr.vec == [state]:
            return False
        seen.add(instr.id)
        todo += instr.args
    return True


def move_up(function: Function) -> None:
    """Move stores to states up, in one function, in place."""
    for position, node in enumerate(function.body):
        if isinstance(node, Loop):
            for store in node.ops("store"):
                if function.vectors[store.vec[0]].kind == "state":
                    _move_up(function, position, store)


def _move_up(function: Function, position: int, store: Instr) -> None:
    """Move a store of body[position] to the first loop that reads all its inputs, if allowed."""
    body, target = function.body, store.vec[0]
    loop = body[position]
    made = backward(store.args[0], loop.body)
    sources = {name for instr in made for name in instr.vec}
    inside = {instr.id for instr in made}
    needed = {arg.id for instr in [*made, store] for arg in instr.args} - inside
    if not sources or any(instr.op in (*_ELSEWHERE, *_DRAWS) for instr in made):
        return
    rest = Loop(loop.domain, [instr for instr in loop.body if instr is not store])
    if not _enough(rest, target, set()):
        return
    for at in range(position):
        first, span = body[at], body[at:position]
        if not isinstance(first, Loop) or first.domain is not loop.domain:
            continue
        if any(instr.op.startswith("bucket_") for instr in first.body):
            continue
        if not all(_loads(first, name) for name in sources) or _reaches_elsewhere(first, target):
            continue
        written = {name for node in span for name in node.writes}
        defined = {value for node in span for value in node.defines}
        if any(target in node.reads for node in span[1:]):
            continue
        if (sources | {target}) & written or needed & defined:
            continue
        mapping: dict[int, Instr] = {}
        first.body += clone(made, mapping)
        first.body.append(store.copy([mapping.get(arg.id, arg) for arg in store.args]))
        loop.body.remove(store)
        return
