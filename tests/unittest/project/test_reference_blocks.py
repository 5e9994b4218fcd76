"""Python blocks of the reference pages compile, and call functions with parameters that exist."""

from __future__ import annotations

import ast
import importlib
import inspect
import re

import pytest

from harness import ROOT

BLOCKS = [
    pytest.param(code, id=f"{page.relative_to(ROOT / 'docs')}-{number}")
    for page in sorted((ROOT / "docs" / "reference").rglob("*.md"))
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    )
]
CODECS = {"bits", "momentum", "rank", "ratio", "threshold"}
"""Parameters of codecs, which calls pass on."""


def imported(name: str) -> object | None:
    """Return the object of a dotted name in one of our packages, or None for another name."""
    if not re.fullmatch(r"(mxnet_)?hipress(\.\w+)+", name):
        return None
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("code", BLOCKS)
def test_block_of_the_reference_is_valid(code):
    tree = ast.parse(code)
    if "mxnet_hipress" in code:
        pytest.importorskip("mxnet")
    if "hipress.torch" in code:
        pytest.importorskip("torch")
    for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
        function = imported(ast.unparse(call.func))
        if function is None:
            continue
        names = {each.arg for each in call.keywords} - CODECS
        assert names <= set(inspect.signature(function).parameters), ast.unparse(call)
