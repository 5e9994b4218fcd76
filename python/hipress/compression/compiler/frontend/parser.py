"""Text to syntax tree."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import lark

from hipress.compression.compiler.errors import CompileError, Pos
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
    return lark.Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


def parse(source: str, path: str = "<text>") -> ast.File:
    """Parse a whole file.

    :param path: the file's name, for messages
    :raises CompileError: with line, column and the expected text, if the text is not CompLL
    """
    try:
        tree = _parser().parse(source)
    except lark.UnexpectedToken as error:
        found = "the end of the file" if error.token.type == "$END" else f'"{error.token}"'
        if error.token.type == "$END":
            lines = source.rstrip().splitlines() or [""]
            pos = Pos(len(lines), len(lines[-1]) + 1)
        else:
            pos = Pos(error.line, error.column)
        raise CompileError(
            f"unexpected {found}; expected {_expected(error.accepts or error.expected)}",
            pos,
            source,
            path,
        ) from None
    except lark.UnexpectedCharacters as error:
        pos = Pos(error.line, error.column)
        message = f'unexpected character "{error.char}"; expected {_expected(error.allowed or ())}'
        raise CompileError(message, pos, source, path) from None
    try:
        return _Builder().transform(tree)
    except lark.exceptions.VisitError as error:
        if isinstance(error.orig_exc, CompileError):
            raise error.orig_exc.located(source, path) from None
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


def _text(token: lark.Token) -> str:
    return str(token)[1:-1]


def _parts(items: tuple) -> tuple[dict[str, object], list[lark.Token]]:
    """Return the parts of a declaration that have names, and its tokens."""
    parts = dict(item for item in items if isinstance(item, tuple))
    return parts, [item for item in items if isinstance(item, lark.Token)]


def _body(part: ast.Node | tuple) -> tuple[ast.Node, ...]:
    return part if isinstance(part, tuple) else (part,)


def _node(kind: type, at_child: bool = False) -> Callable:
    """Return a rule whose children are a node's fields and position."""

    def build(self, meta, *children):
        pos = _pos(children[0] if at_child else meta)
        return kind(pos, *(str(c) if isinstance(c, lark.Token) else c for c in children))

    return build


def _part(name: str) -> Callable:
    """Return a part of a declaration, for _parts()."""
    return lambda self, meta, value: (name, value)


@lark.v_args(meta=True, inline=True)
class _Builder(lark.Transformer):
    """Transformer of lark's tree into syntax nodes. A method's name is the rule's."""

    default, multiple = _part("default"), _part("multiple")
    for_sum, condition = _part("for_sum"), _part("condition")
    name, unary, ternary = _node(ast.Name), _node(ast.Unary), _node(ast.Ternary)
    index, member, cast = _node(ast.Index), _node(ast.Member), _node(ast.Cast)
    return_, random = _node(ast.Return), _node(ast.Random)
    lambda_def, assign = _node(ast.LambdaDef, at_child=True), _node(ast.Assign, at_child=True)
    call = call_statement = _node(ast.Call, at_child=True)

    def start(self, meta, *items):
        name, summary = next((i for i in reversed(items) if isinstance(i, tuple)), (None, ""))
        kinds = (ast.Param, ast.State, ast.Function)
        return ast.File(
            name, summary, *(tuple(i for i in items if isinstance(i, kind)) for kind in kinds)
        )

    def algorithm(self, meta, name, summary='""'):
        return _text(name), _text(summary)

    def choices(self, meta, *values):
        return "bounds", ("{", values, "}")

    def interval(self, meta, opening, low, high, closing):
        return "bounds", (str(opening), (low, high), str(closing))

    def param(self, meta, type_, name, *rest):
        parts, docs = _parts(rest)
        named = [parts.get(key) for key in ("default", "bounds", "multiple", "for_sum")]
        return ast.Param(_pos(name), type_, str(name), *named, _text(docs[0]) if docs else "")

    def state(self, meta, type_, name, *rest):
        if type_.base != "float":
            raise CompileError("a state must be a vector of float (float*)", type_.pos)
        parts, docs = _parts(rest)
        doc = _text(docs[0]) if docs else ""
        return ast.State(type_.pos, str(name), doc, parts.get("condition"))

    def function(self, meta, name, *rest):
        formals = rest[0] if len(rest) == 2 else ()
        return ast.Function(_pos(name), str(name), formals, rest[-1])

    def formals(self, meta, *formals):
        return formals

    def formal(self, meta, type_, *rest):
        return ast.Formal(_pos(rest[-1]), type_, len(rest) == 2, str(rest[-1]))

    def type(self, meta, token):
        if token.type == "SCALAR_TYPE":
            return ast.TypeName(str(token), None, _pos(token))
        bits = int(token) if token.type == "INT" else str(token)
        return ast.TypeName("uint", bits, _pos(token))

    def block(self, meta, *statements):
        return statements

    def decl(self, meta, type_, name, value=None):
        return ast.Declare(_pos(name), type_, False, str(name), value)

    def vector_decl(self, meta, type_, name, value=None):
        return ast.Declare(_pos(name), type_, True, str(name), value)

    def array_decl(self, meta, type_, name, size):
        return ast.Declare(_pos(name), type_, True, str(name), None, size)

    def if_(self, meta, condition, yes, no=()):
        return ast.If(_pos(meta), condition, _body(yes), _body(no))

    def arguments(self, meta, *values):
        return values

    def float_(self, meta, token):
        return ast.Number(_pos(meta), float(token.rstrip("f")))

    def int_(self, meta, token):
        return ast.Number(_pos(meta), int(token, 16 if "x" in token.lower() else 10))

    def string(self, meta, token):
        return ast.String(_pos(meta), _text(token))

    def binary(self, meta, left, op, right):
        return ast.Binary(_pos(op), str(op), left, right)

    def lambda_(self, meta, *parts):
        *formals, result, body = parts
        return ast.Lambda(_pos(meta), formals[0] if formals else (), result, body)
