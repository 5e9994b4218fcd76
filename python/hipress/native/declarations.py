"""Declarations for ctypes, read from the text of a C header.

Functions, structures, callbacks and constants are declared in the header only: in
``include/hipress/c_api.h``, and for compiled codecs in ``abi.h`` and ``cuda/abi.h`` of CompLL. This
module knows the few forms of C that these use, and nothing of what they declare.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable

_SCALARS = {
    "int": ctypes.c_int,
    "int64_t": ctypes.c_int64,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
    "void": None,
}
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONSTANT = re.compile(r"^#define (\w+) \(?(-?\d+)\)?$", re.MULTILINE)
_STATEMENT = re.compile(
    r"^(?:typedef|struct|enum|HIPRESS_API)\b[^;{]*(?:\{[^}]*\}[^;]*)?;", re.MULTILINE
)
_ENUM = re.compile(r"(?:typedef )?enum (\w*) ?\{(.*)\}")
_STRUCT = re.compile(r"(?:typedef )?struct (\w+) \{(.*)\}")
_HANDLE = re.compile(r"typedef struct \w+\* (\w+);")
_CALLBACK = re.compile(r"typedef (.+?) \(\*(\w+)\)\((.*)\);")
_FUNCTION = re.compile(r"HIPRESS_API (.*\W)(\w+)\((.*)\);")
_MEMBER = re.compile(r"([\w\s*]*[\s*])(\w[\w\s,]*)(?:\[(\w+)\])?")
_FUNCTION_MEMBER = re.compile(r"(.+?) \(\*(\w+)\)\((.*)\)")


def statements(header: str) -> list[str]:
    """Return the declarations in a header, each on one line, without comments."""
    found = _STATEMENT.findall(_COMMENT.sub("", header))
    return [" ".join(statement.split()) for statement in found]


class Declarations:
    """Types and constants of a header as attributes, by their names in it.

    A pointer to memory that holds elements is an address: ``void*``, ``float*``, ``uint8_t*``, an
    argument that points to const, a member that points to numbers. Arguments take integers, ctypes
    arrays or ``byref`` for it. An argument that points to anything else gets a result.

    Args:
        header: The header's text.

    Raises:
        ValueError: If it has a declaration of another form.
    """

    def __init__(self, header: str) -> None:
        self.functions: dict[str, tuple[type | None, list[type]]] = {}
        """Result and arguments of each function."""
        for name, value in _CONSTANT.findall(_COMMENT.sub("", header)):
            setattr(self, name, int(value))
        for statement in statements(header):
            self._declare(statement)

    def declare(self, library: ctypes.CDLL) -> None:
        """Set the types of a library's functions.

        Raises:
            AttributeError: If it does not have one of them.
        """
        for name, (result, arguments) in self.functions.items():
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments

    def _declare(self, statement: str) -> None:
        if found := _ENUM.match(statement):
            setattr(self, found[1], ctypes.c_int)
            for name, value in re.findall(r"(\w+) = (-?\d+)", found[2]):
                setattr(self, name, int(value))
        elif found := _STRUCT.match(statement):
            members = found[2].split(";")[:-1]
            fields = [field for member in members for field in self._fields(member)]
            setattr(self, found[1], type(found[1], (ctypes.Structure,), {"_fields_": fields}))
        elif found := _HANDLE.match(statement):
            setattr(self, found[1], ctypes.c_void_p)
        elif found := _CALLBACK.match(statement):
            setattr(self, found[2], self._callback(found[1], found[3], self._type))
        elif found := _FUNCTION.match(statement):
            arguments = [self._argument(argument) for argument in self._arguments(found[3])]
            self.functions[found[2]] = self._type(found[1]), arguments
        else:
            raise ValueError(f"a declaration of a form that is not known here: {statement}")

    def _fields(self, member: str) -> list[tuple[str, type]]:
        if found := _FUNCTION_MEMBER.match(member):
            return [(found[2], self._callback(found[1], found[3], self._argument))]
        if found := _MEMBER.fullmatch(member.strip()):
            kind = self._type(found[1])
            if getattr(kind, "_type_", "") in _SCALARS.values():
                kind = ctypes.c_void_p
            if found[3]:
                kind = kind * getattr(self, found[3])
            return [(name.strip(), kind) for name in found[2].split(",")]
        raise ValueError(f"a member of a form that is not known here: {member}")

    def _callback(self, result: str, arguments: str, kind: Callable[[str], type]) -> type:
        if "(" in arguments:  # Python does not call functions whose arguments are functions
            return ctypes.c_void_p
        return ctypes.CFUNCTYPE(self._type(result), *map(kind, self._arguments(arguments)))

    def _arguments(self, text: str) -> list[str]:
        return [] if text == "void" else text.split(", ")

    def _argument(self, text: str) -> type:
        pointee = text.rpartition("*")[0].rpartition("*")[2].split()
        kind = self._type(text)
        return ctypes.c_void_p if "const" in pointee and kind is not ctypes.c_char_p else kind

    def _type(self, text: str) -> type | None:
        """Return the type of an argument, field or result, whose name may follow."""
        stars = text.count("*")
        base = next(word for word in text.replace("*", " ").split() if word != "const")
        if base == "char" or (base in ("void", "float", "uint8_t") and stars):
            kind, stars = ctypes.c_char_p if base == "char" else ctypes.c_void_p, stars - 1
        else:
            kind = _SCALARS[base] if base in _SCALARS else getattr(self, base)
        for _ in range(stars):
            kind = ctypes.POINTER(kind)
        return kind
