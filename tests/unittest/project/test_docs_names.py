"""Names and counts in the documentation that must exist in the code."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from benchmarks.__main__ import SUBJECTS
from harness import ROOT

SOURCE = ROOT / "python"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
API = ROOT / "docs" / "reference" / "api.md"
PACKAGES = ("hipress", "mxnet_hipress")
FOLDERS = ("python", "src", "include", "tests", "benchmarks", "harness", "tools", "examples")
EXAMPLES = {
    "python/hipress/topology/hub.py",
    "python/hipress/compression/compiler/specs/signmean.cll",
}
"""Files that pages explain how to write."""
METHODS = {"hipress.powersgd"}
"""Names of measured methods that look like names of code."""


@functools.cache
def module_path(name: str) -> Path | None:
    """Return the file of a module or package, None if there is none."""
    base = SOURCE / name.replace(".", "/")
    return next((p for p in (base / "__init__.py", base.with_suffix(".py")) if p.exists()), None)


@functools.cache
def names_in(module: str) -> dict[str, ast.AST | str]:
    """Return what a module defines by name, and dotted names of what it imports."""
    found: dict[str, ast.AST | str] = {}
    path = module_path(module)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            found.setdefault(node.name, node)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update({t.id: node for t in targets if isinstance(t, ast.Name)})
    return found


def definition(name: str) -> tuple[str, ast.AST | None] | None:
    """Return the module and node of a dotted name; the node of a module is None."""
    if module_path(name):
        return name, None
    owner, _, last = name.rpartition(".")
    found = definition(owner) if owner.split(".")[0] in PACKAGES else None
    if found is None:
        return None
    module, node = found
    if isinstance(node, ast.ClassDef):
        return (module, None) if last in members(module, node) else None
    target = names_in(module).get(last)
    if isinstance(target, str):
        return definition(target) if target != name else None
    return None if target is None else (module, target)


def members(module: str, node: ast.ClassDef) -> set[str]:
    """Return the names of a class's attributes and methods, also of bases in the package."""
    found = {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
    for each in ast.walk(node):
        if isinstance(each, (ast.Assign, ast.AnnAssign)):
            for target in each.targets if isinstance(each, ast.Assign) else [each.target]:
                for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                    found.add(getattr(name, "attr", getattr(name, "id", "")))
    for base in node.bases:
        head, _, rest = ast.unparse(base).partition(".")
        target = names_in(module).get(head)
        full = target if isinstance(target, str) else f"{module}.{head}"
        base_of = definition(f"{full}.{rest}" if rest else full)
        if base_of and isinstance(base_of[1], ast.ClassDef):
            found |= members(*base_of)
    return found


@functools.cache
def classes() -> dict[str, list[tuple[str, ast.ClassDef]]]:
    """Return the package's classes by their names."""
    found: dict[str, list] = {}
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            module = ".".join(part for part in parts if part != "__init__")
            for node in names_in(module).values():
                if isinstance(node, ast.ClassDef):
                    found.setdefault(node.name, []).append((module, node))
    return found


def test_names_are_resolved_through_imports_and_bases():
    assert definition("hipress.torch.elastic.State.register_reset_callback")
    assert definition("hipress.torch.HipressError")
    assert not definition("hipress.torch.elastic.State.missing")
    assert not definition("hipress.torch.missing") and not definition("numpy.array")


def test_api_page_lists_members_that_exist():
    directive = re.compile(r"^\.\. auto(\w+):: (\S+)\n((?:   .*\n)*)", re.MULTILINE)
    entries = directive.findall(API.read_text())
    assert len(entries) > 20
    missing = []
    for kind, name, options in entries:
        found = definition(name)
        listed = re.findall(r":(?:exclude-)?members: *(.+)", options)
        names = [each.strip() for text in listed for each in text.split(",")]
        if found is None or (kind == "module") != (module_path(name) is not None):
            missing.append(name)
        missing += [f"{name}.{each}" for each in names if not definition(f"{name}.{each}")]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_names_code_that_exists(page):
    missing = []
    for code in re.findall(r"`([^`\n]+)`", page.read_text()):
        dotted = re.findall(r"(?<![\w./-])((?:mxnet_)?hipress(?:\.[A-Za-z_]\w*)+)(?![\w/-])", code)
        missing += [name for name in dotted if name not in METHODS and not definition(name)]
        for owner, member in re.findall(r"(?<![\w./])([A-Z]\w+)\.([a-z_]\w*)\b", code):
            known = classes().get(owner, [])
            if known and not any(member in members(*each) for each in known):
                missing.append(f"{owner}.{member}")
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_page_names_files_that_exist(page):
    text = page.read_text()
    paths = set(re.findall(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)})/[\w./-]+\.\w+\b", text))
    missing = [path for path in paths - EXAMPLES if not (ROOT / path).exists()]
    subjects = re.findall(r"python -m benchmarks ([a-z][\w-]*)", text)
    missing += [f"python -m benchmarks {name}" for name in subjects if name not in SUBJECTS]
    assert not missing


def test_cuda_page_counts_the_algorithms():
    specs = list((SOURCE / "hipress" / "compression" / "compiler" / "specs").glob("*.cll"))
    counts = re.findall(r"(\d+) algorithms", (ROOT / "docs" / "reference" / "cuda.md").read_text())
    assert counts and set(map(int, counts)) == {len(specs)}


def test_tests_that_pages_name_exist():
    missing = []
    for page in PAGES:
        for file, test in re.findall(r"`(test_\w+\.py)::(test_\w+)", page.read_text()):
            paths = list((ROOT / "tests" / "unittest").rglob(file))
            if not any(f"def {test}(" in path.read_text() for path in paths):
                missing.append(f"{page.name}: {file}::{test}")
    assert not missing
