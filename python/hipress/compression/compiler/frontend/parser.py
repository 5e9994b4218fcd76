"""Text to syntax tree."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import lark

from hipress.compression.compiler.compiler_errors import CompileError, Pos, expect
from hipress.compression.compiler.frontend import ast

# How a missing or wrong token is called in messages.
_NAMES = {
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "HEX": "a number",
    "STRING": "a text in quotes",
    "SCALAR_TYPE": "a type",
    "UINT": "a type",
    "RANDOM": "random",
    "LSQB": "[",
    "RSQB": "]",
    "LPAR": "(",
    "RPAR": ")",
    "LBRACE": "{",
    "RBRACE": "}",
    "SEMICOLON": ";",
    "COMMA": ",",
    "EQUAL": "=",
    "QMARK": "?",
    "COLON": ":",
    "DOT": ".",
    "__ANON_0": "->",
    "$END": "the end of the file",
}


@lru_cache(maxsize=1)
def _parser() -> lark.Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text()
    return lark.Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse(source: str) -> ast.File:
    """Parse a whole file.

    Raises:
        CompileError: With the place and the expected text, if the text is not CompLL.
    """
    try:
        tree = _parser().parse(source)
    except lark.UnexpectedToken as error:
        token, pos = f'"{error.token}"', Pos(error.line, error.column)
        if error.token.type == "$END":
            token = "the end of the file"
            lines = source.rstrip().splitlines() or [""]
            pos = Pos(len(lines), len(lines[-1]) + 1)
        expected = _expected(error.accepts or error.expected)
        raise CompileError(f"unexpected {token}; expected {expected}", pos) from None
    except lark.UnexpectedCharacters as error:
        message = f'unexpected character "{error.char}"; expected {_expected(error.allowed or ())}'
        raise CompileError(message, Pos(error.line, error.column)) from None
    try:
        return _Builder().transform(tree)
    except lark.exceptions.VisitError as error:
        if isinstance(error.orig_exc, CompileError):
            raise error.orig_exc from None
        raise


def _expected(names: object) -> str:
    terminals = {terminal.name: terminal for terminal in _parser().terminals}
    words = set()
    for name in names:
        pattern = terminals[name].pattern if name in terminals else None
        if name in _NAMES:
            words.add(_NAMES[name])
        elif pattern is not None and isinstance(pattern, lark.lexer.PatternStr):
            words.add(f'"{pattern.value}"')
        else:
            words.add(name.lower())
    if {"a name", "a number", "("} <= words:
        operators = {'"-"', '"+"', '"!"', "[", "(", "a number", "random", "a name", "a type"}
        words = (words - operators) | {"an expression"}
    if any(word in words for word in ('"<"', '"*"')) and len(words) > 6:
        operators = {f'"{op}"' for op in "+ - * / % & | ^ < > <= >= == != << >> && ||".split()}
        words = (words - operators - {"?", "[", "."}) | {"an operator"}
    listed = sorted(words)
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]


def _pos(item: lark.Token | lark.tree.Meta) -> Pos:
    return Pos(item.line, item.column)


class _Builder(lark.Transformer):
    """Transformer of lark's tree into nodes, by the name of a rule without a method."""

    def STRING(self, token):
        return str(token)[1:-1]

    def FLOAT(self, token):
        return ast.Number(_pos(token), float(token.rstrip("f")))

    def INT(self, token):
        return ast.Number(_pos(token), int(token))

    def HEX(self, token):
        return ast.Number(_pos(token), int(token, 16))

    def __default__(self, data, children, meta):
        """Return a node at the place of its name, if it declares, assigns or calls one."""
        names = [c for c in children if isinstance(c, lark.Token) and c.type == "NAME"]
        names = [] if data == "member" else names
        place = children[1] if data == "binary" else next(iter(names), meta)
        values = [str(c) if isinstance(c, lark.Token) else c for c in children]
        return getattr(ast, data.title().replace("_", ""))(_pos(place), *values)

    def start(self, items):
        name, summary = next((i for i in reversed(items) if isinstance(i, list)), (None, None))
        kinds = (ast.Param, ast.State, ast.Function)
        listed = (tuple(i for i in items if isinstance(i, kind)) for kind in kinds)
        return ast.File(name, summary or "", *listed)

    def algorithm(self, texts):
        return texts

    def formals(self, nodes):
        return tuple(nodes)

    arguments = block = formals

    def choices(self, values):
        return "{", values, "}"

    def interval(self, parts):
        opening, low, high, closing = parts
        return str(opening), (low, high), str(closing)

    def state(self, parts):
        type_, name, *more = parts
        expect(type_.base == "float", "a state must be a vector of float (float*)", type_.pos)
        return ast.State(type_.pos, str(name), *more)

    def type(self, parts):
        (part,) = parts
        if isinstance(part, ast.Number):
            return ast.TypeName("uint", part.value, part.pos)
        if part.type == "NAME":
            return ast.TypeName("uint", str(part), _pos(part))
        return ast.TypeName(str(part), None, _pos(part))

    def array_decl(self, parts):
        type_, name, size = parts
        return ast.Declare(_pos(name), type_, True, str(name), None, size)

    @lark.v_args(meta=True)
    def if_(self, meta, parts):
        condition, *sides = parts
        sides = [(s,) if isinstance(s, ast.SyntaxNode) else s or () for s in sides]
        return ast.If(_pos(meta), condition, *sides)
