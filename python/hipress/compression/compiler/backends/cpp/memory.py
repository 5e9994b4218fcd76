"""C++ of a loop's loads and stores: floats, packed codes, results of filters."""

from __future__ import annotations

from hipress.compression.compiler.backends.common.expressions import lanes
from hipress.compression.compiler.backends.cpp.blocks import bucket_value
from hipress.compression.compiler.backends.cpp.lazy import settle_lambda
from hipress.compression.compiler.backends.cpp.loop_context import CppLoopContext
from hipress.compression.compiler.ir.ir import Instr


def load(loop: CppLoopContext, instr: Instr) -> str:
    name, owner = instr.vec[0], loop.owner
    vector = owner.function.vectors[name]
    if vector.kind == "input":
        line = "const float* const gradient = GradientTile<kTail>(call, i, rem, converted);"
        if line not in loop.before:
            loop.before += ["alignas(64) float converted[kTile];", line]
            if loop.next_block:
                loop.before.append(f"PrefetchGradient(call, i + {loop.next_block});")
        return "Load<kTail>(gradient, v * kLanes, left)"
    if vector.packed and vector.bits == 1:
        return f"Ones(MaskOf({loop.bit_word(name)}, v))"
    if vector.packed:
        return f"GetCodes<{owner.msb(name)}>({loop.code_tile(name)}, {vector.bits}, v)"
    text = f"Load<kTail>({owner.memory(name)}, at, left)"
    if owner.lazy is not None and name == owner.lazy.state and loop.loop is owner.lazy.first:
        if "auto settle" not in "".join(loop.prologue):
            loop.prologue += settle_lambda(owner.lazy, "kLazy == 2")
        return f"kLazy ? settle({text}) : {text}"
    has = owner.has(name)
    if loop.next_block:
        prefetch = f"PrefetchTile({owner.memory(name)} + i + {loop.next_block});"
        loop.once_before(f"if ({has}) {prefetch}" if has else prefetch)
    return f"{has} ? {text} : F{{}}" if has else text


def load_at(loop: CppLoopContext, instr: Instr) -> str:
    name, where, owner = instr.vec[0], instr.args[0], loop.owner
    index = loop.value(where)
    runs = where.op == "load" and where.vec[0] in owner.sampled
    if runs:
        index = f"{owner.memory(where.vec[0])} + at, {index}"
    if owner.function.vectors[name].kind == "input":
        return f"GatherGradient{'Runs<kTail>' if runs else ''}(call, {index})"
    memory, size, has = owner.memory(name), owner.size(name), owner.has(name)
    size = f"{has} ? {size} : 0" if has else size
    gather = "GatherRuns<kTail, " if runs else "Gather<"
    return f"{gather}{lanes.types[instr.type]}>({memory}, {size}, {index})"


def bucket_load(loop: CppLoopContext, instr: Instr) -> str:
    if loop.bucket is None:
        return f"Set({bucket_value(loop, instr, f'i / {loop.owner.value(instr.args[0])}')})"
    name = f"bucket{loop.owner.number(instr)}"
    value = f"Set({bucket_value(loop, instr, 'block')})"
    loop.prologue.append(f"const {lanes.types[instr.type]} {name} = {value};")
    return name


def store(loop: CppLoopContext, instr: Instr) -> None:
    name, owner = instr.vec[0], loop.owner
    vector = owner.function.vectors[name]
    if name in owner.filters:
        _filter(loop, instr)
        return
    memory = owner.target(name)
    if not vector.packed:
        value = loop.value(instr.args[0])
        if vector.kind == "output":
            value = f"part.add ? Load<kTail>({memory}, at, left) + {value} : {value}"
        has = owner.has(name)
        apart = ""
        if name in owner.final:
            apart = f"apart_{name}"
            loop.shared.append(f"const StoresApart stores_{name} = {{{apart}}};")
        line = f"Store<kTail>({', '.join(filter(None, [memory, 'at', 'left', value, apart]))});"
        loop.body.append(f"if ({has}) {line}" if has else line)
        return
    size, codes, msb = owner.packed_size(name), f"out_{name}", owner.msb(name)
    if vector.bits == 1 and (masks := _masks(loop, instr, codes)):
        loop.after.append(f"StoreMasks<kTail, {msb}>({masks}, {memory}, i, {size});")
        return
    code = instr.args[0]
    high = _upper_half(code, vector.bits)
    value = loop.value(high or code)
    loop.before += [f"I {codes}[kVectors];", cleared(codes, "I{}")]
    loop.body.append(f"{codes}[v] = kTail ? Select(Valid(left), {value}, I{{}}) : {value};")
    loop.after.append(
        f"StoreTile<kTail, {msb}{', true' if high else ''}>({codes}, {vector.bits}, "
        f"{memory}, i, {size});"
    )


def _masks(loop: CppLoopContext, store: Instr, name: str) -> str | None:
    """Collect the masks of a bool that is stored as one bit."""
    value = store.args[0]
    if value.op != "cast" or value.args[0].type != "bool" or value.id not in loop.inside:
        return None
    mask = loop.value(value.args[0])
    loop.before += [f"M {name}[kVectors];", cleared(name, "Set(false)")]
    loop.body.append(f"{name}[v] = kTail ? And(Valid(left), {mask}) : {mask};")
    return name


def _filter(loop: CppLoopContext, store: Instr) -> None:
    """Find the indices of a mask that only a filter reads, in the same pass."""
    number = loop.owner.number(store)  # a loop may fill several
    masks = _masks(loop, store, f"passed{number}")
    loop.setup.append(f"Filter filter{number}(&arena, {loop.domain});")
    loop.prologue.append(f"int32_t* found{number} = filter{number}.Begin(worker, begin);")
    loop.after += [
        f"const uint64_t hits{number} = JoinMasks({masks});",
        f"found{number} = AppendIndices(hits{number}, i, found{number});",
    ]
    loop.finish.append(f"filter{number}.End(worker, found{number});")
    compact = loop.owner.filters[store.vec[0]]
    loop.epilogue += loop.owner.filtered(compact, f"filter{number}")


def _upper_half(code: Instr, bits: int | str) -> Instr | None:
    """Return the value of which a code is the upper half, if any.

    Where codes are packed, such a code needs no shift.
    """
    if code.op != "wrap" or code.attrs["bits"] != bits or code.args[0].op != "shr":
        return None
    whole, amount = code.args[0].args
    return whole if amount.op == "const" and amount.attrs["value"] == 16 else None


def cleared(name: str, value: str) -> str:
    """Return an assignment that clears a value, because a tail leaves vectors out."""
    return f"if (kTail) for (int v = 0; v < kVectors; ++v) {name}[v] = {value};"
