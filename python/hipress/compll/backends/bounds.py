"""How large a number can become, as far as it follows from constants and from what is allowed."""

from __future__ import annotations

import math
import operator

from hipress.compll.ir.ir import Instr, Param

_OPERATIONS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "shl": lambda a, b: a << b,
}  # fmt: skip
_EXACT = 2**24  # integers below it are the same in every type


def upper(value: Instr, params: dict[str, Param]) -> float:
    """What a float is never above, unless it is NaN; infinity if nothing is known.

    :param params: the program's parameters by name
    """
    known = _possible(value, params)
    if known:
        return float(max(known))
    if value.type != "f32":
        return math.inf
    if value.op == "select":
        bounds = [upper(arg, params) for arg in value.args[1:]]
        smaller = value.args[0].op == "lt" and value.args[0].args == value.args[1:]
        return min(bounds) if smaller else max(bounds)
    if value.op == "mul":
        factor = _possible(value.args[1], params)
        if factor and min(factor) > 0:
            return max(upper(value.args[0], params) * max(factor), 0.0)
    return math.inf


def _possible(value: Instr, params: dict[str, Param]) -> set[int] | None:
    """The whole numbers that a value may be, of which there are few; None if that is not known."""
    if value.op == "const":
        found = {value.attrs["value"]}
    elif value.op == "param":
        found = set(params[value.attrs["name"]].choices or ())
    elif value.op == "cast":
        found = _possible(value.args[0], params)
    elif value.op in _OPERATIONS:
        one, two = (_possible(arg, params) for arg in value.args)
        if not one or not two or value.op == "shl" and not all(0 <= b < 24 for b in two):
            return None
        found = {_OPERATIONS[value.op](a, b) for a in one for b in two}
    else:
        return None
    whole = found and all(abs(number) < _EXACT and number == int(number) for number in found)
    return {int(number) for number in found} if whole and len(found) <= 256 else None
