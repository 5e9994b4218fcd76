"""Upper bounds of numbers from constants and allowed values, and the bits that affect results."""

from __future__ import annotations

import math
import operator
from dataclasses import replace

from hipress.compression.compiler.ir.ir import Instr, Param

_OPERATIONS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "shl": lambda a, b: a << b,
}
_EXACT = 2**24  # integers below it are the same in every type
_WORD = 2**32 - 1


def upper(value: Instr, params: dict[str, Param]) -> float:
    """Return an upper bound of a float that is not NaN, or infinity if none is known.

    :param params: the program's parameters by name
    """
    known = _possible(value, params)
    if known:
        return float(max(known))
    if value.type != "f32":
        return math.inf
    if value.op == "select":
        bounds = [upper(arg, params) for arg in value.args[1:]]
        if value.args[0].op == "lt" and value.args[0].args == value.args[1:]:
            # a < b ? a : b of an `a` that is NaN is b.
            return min(bounds) if _possible(value.args[1], params) else bounds[1]
        return max(bounds)
    if value.op == "mul":
        factor = _possible(value.args[1], params)
        if factor and min(factor) > 0:
            return max(upper(value.args[0], params) * max(factor), 0.0)
    return math.inf


def fits(value: Instr, bits: int | str, params: dict[str, Param]) -> bool:
    """Return whether a float never exceeds the largest code of `bits` bits, an int or a
    parameter."""
    if isinstance(bits, int):
        return upper(value, params) < 2**bits
    return all(
        upper(value, {**params, bits: replace(params[bits], choices=(choice,))}) < 2 ** int(choice)
        for choice in params[bits].choices
    )


def wanted_bits(value: Instr, body: list[Instr], params: dict[str, Param]) -> int:
    """Return the bits of an i32 of a loop's body that decide anything: a mask of 32 bits."""
    found = 0
    for user in body:
        for position, arg in enumerate(user.args):
            if arg is value:
                found |= _passed_on(user, position, body, params)
    return found


def _passed_on(user: Instr, position: int, body: list[Instr], params: dict[str, Param]) -> int:
    """Return the bits of one operand that decide anything."""
    if user.type != "i32" or user.op not in ("add", "sub", "wrap", "select", "shr", "shl"):
        return _WORD
    wanted = wanted_bits(user, body, params)
    if user.op in ("add", "sub"):
        return 2 ** wanted.bit_length() - 1  # carries come from below
    if user.op == "select":
        return _WORD if position == 0 else wanted
    if user.op == "wrap":
        bits = user.attrs["bits"]
        most = bits if isinstance(bits, int) else max(map(int, params[bits].choices))
        return wanted & (2**most - 1)
    amount = _possible(user.args[1], params)
    if position == 1 or not amount or len(amount) > 1 or not 0 <= min(amount) < 32:
        return _WORD
    shift = min(amount)
    if user.op == "shl":
        return wanted >> shift
    sign = 2**31 if wanted >> (32 - shift) else 0
    return (wanted << shift | sign) & _WORD


def _possible(value: Instr, params: dict[str, Param]) -> set[int] | None:
    """Return the whole numbers that a value may be, of which there are few; None if that is not
    known."""
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
