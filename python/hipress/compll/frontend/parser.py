"""Text to syntax tree."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import lark

from hipress.compll.errors import CompileError, Pos
from hipress.compll.frontend import ast

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
    """Parses a whole file.

    :param path: the file's name, for messages
    :raises CompileError: with line, column and what was expected, if the text is not CompLL
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
        return _Builder().file(tree)
    except CompileError as error:
        raise error.located(source, path) from None


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


def _pos(item: lark.Tree | lark.Token) -> Pos:
    if isinstance(item, lark.Token):
        return Pos(item.line, item.column)
    return Pos(item.meta.line, item.meta.column) if not item.meta.empty else Pos(1, 1)


def _text(token: lark.Token) -> str:
    return str(token)[1:-1]


class _Builder:
    """Turns lark's tree into syntax nodes."""

    def file(self, tree: lark.Tree) -> ast.File:
        name, summary = None, ""
        params, states, functions = [], [], []
        for item in tree.children:
            if item.data == "algorithm":
                name = _text(item.children[0])
                summary = _text(item.children[1]) if len(item.children) > 1 else ""
            elif item.data == "param":
                params.append(self.param(item))
            elif item.data == "state":
                states.append(self.state(item))
            else:
                functions.append(self.function(item))
        return ast.File(name, summary, tuple(params), tuple(states), tuple(functions))

    def param(self, tree: lark.Tree) -> ast.Param:
        type_, name, *rest = tree.children
        parts: dict[str, object] = {}
        doc = ""
        for part in rest:
            if isinstance(part, lark.Token):
                doc = _text(part)
            elif part.data == "choices":
                parts["bounds"] = ("{", tuple(self.expr(child) for child in part.children), "}")
            elif part.data == "interval":
                opening, low, high, closing = part.children
                values = (self.expr(low), self.expr(high))
                parts["bounds"] = (str(opening), values, str(closing))
            else:
                parts[str(part.data)] = self.expr(part.children[0])
        return ast.Param(
            _pos(name),
            self.type(type_),
            str(name),
            parts.get("default"),
            parts.get("bounds"),
            parts.get("multiple"),
            parts.get("for_sum"),
            doc,
        )

    def state(self, tree: lark.Tree) -> ast.State:
        type_, *rest = tree.children
        type_name = self.type(type_)
        tokens = [str(token) for token in rest if not isinstance(token, lark.Tree)]
        if type_name.base != "float":
            raise CompileError("a state must be a vector of float (float*)", type_name.pos)
        names = [token for token in tokens if token != "*" and not token.startswith('"')]
        docs = [token[1:-1] for token in tokens if token.startswith('"')]
        conditions = [
            self.expr(part.children[0]) for part in rest
            if isinstance(part, lark.Tree) and part.data == "condition"
        ]  # fmt: skip
        condition = conditions[0] if conditions else None
        return ast.State(_pos(type_), names[0], docs[0] if docs else "", condition)

    def function(self, tree: lark.Tree) -> ast.Function:
        name, *rest = tree.children
        formals = self.formals(rest[0]) if len(rest) == 2 else ()
        return ast.Function(_pos(name), str(name), formals, self.block(rest[-1]))

    def formals(self, tree: lark.Tree) -> tuple[ast.Formal, ...]:
        formals = []
        for formal in tree.children:
            name = formal.children[-1]
            vector = len(formal.children) == 3
            formals.append(
                ast.Formal(_pos(name), self.type(formal.children[0]), vector, str(name))
            )
        return tuple(formals)

    def type(self, tree: lark.Tree) -> ast.TypeName:
        token = tree.children[0]
        if token.type == "SCALAR_TYPE":
            return ast.TypeName(str(token), None, _pos(token))
        bits = int(token) if token.type == "INT" else str(token)
        return ast.TypeName("uint", bits, _pos(token))

    def block(self, tree: lark.Tree) -> tuple[ast.Node, ...]:
        if tree.data != "block":
            return (self.statement(tree),)
        return tuple(self.statement(child) for child in tree.children)

    def statement(self, tree: lark.Tree) -> ast.Node:
        kids = tree.children
        if tree.data == "lambda_def":
            return ast.LambdaDef(_pos(kids[0]), str(kids[0]), self.expr(kids[1]))
        if tree.data in ("decl", "vector_decl"):
            kids = [kid for kid in kids if not (isinstance(kid, lark.Token) and kid == "*")]
            value = self.expr(kids[2]) if len(kids) > 2 else None
            vector = tree.data == "vector_decl"
            return ast.Declare(_pos(kids[1]), self.type(kids[0]), vector, str(kids[1]), value)
        if tree.data == "array_decl":
            size = self.expr(kids[2])
            return ast.Declare(
                _pos(kids[1]), self.type(kids[0]), True, str(kids[1]), None, size
            )
        if tree.data == "assign":
            return ast.Assign(_pos(kids[0]), str(kids[0]), self.expr(kids[1]))
        if tree.data == "if_":
            no = self.block(kids[2]) if len(kids) > 2 else ()
            return ast.If(_pos(tree), self.expr(kids[0]), self.block(kids[1]), no)
        if tree.data == "return_":
            return ast.Return(_pos(tree), self.expr(kids[0]))
        assert tree.data == "call_statement", tree.data
        return self.call(tree)

    def call(self, tree: lark.Tree) -> ast.Call:
        name, *rest = tree.children
        args = tuple(self.expr(arg) for arg in rest[0].children) if rest else ()
        return ast.Call(_pos(name), str(name), args)

    def expr(self, tree: lark.Tree | lark.Token) -> ast.Node:
        pos, kids = _pos(tree), tree.children
        kind = str(tree.data)
        if kind == "float_":
            return ast.Number(pos, float(str(kids[0]).rstrip("f")))
        if kind == "int_":
            return ast.Number(pos, int(str(kids[0]), 0) if "x" in kids[0].lower() else int(kids[0]))
        if kind == "string":
            return ast.String(pos, _text(kids[0]))
        if kind == "name":
            return ast.Name(pos, str(kids[0]))
        if kind == "unary":
            return ast.Unary(pos, str(kids[0]), self.expr(kids[1]))
        if kind == "binary":
            left, op, right = kids
            return ast.Binary(_pos(op), str(op), self.expr(left), self.expr(right))
        if kind == "ternary":
            return ast.Ternary(pos, *(self.expr(kid) for kid in kids))
        if kind == "index":
            return ast.Index(pos, self.expr(kids[0]), self.expr(kids[1]))
        if kind == "member":
            return ast.Member(pos, self.expr(kids[0]), str(kids[1]))
        if kind == "call":
            return self.call(tree)
        if kind == "random":
            bounds = kids[1].children if len(kids) > 1 else ()
            return ast.Random(pos, self.type(kids[0]), tuple(self.expr(kid) for kid in bounds))
        if kind == "cast":
            return ast.Cast(pos, self.type(kids[0]), self.expr(kids[1]))
        assert kind == "lambda_", kind
        formals = self.formals(kids[0]) if len(kids) == 3 else ()
        return ast.Lambda(pos, formals, self.type(kids[-2]), self.block(kids[-1]))
