#!/usr/bin/env python3
"""Writes docs/contributing/slowest-tests.md from the JUnit files of a complete run of the tests.

    make test-python PYTEST_ARGS=--junitxml=all.xml
    python tools/slowest_tests.py all.xml

What a test proves is the first paragraph of its docstring, and why it takes so long is a paragraph
that begins with "Cost:". Tests that lack either are listed on standard error.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "contributing" / "slowest-tests.md"
HEAD = """# The slowest tests

This page shows where the tests' time goes, for those who want to make them faster.
[Tests](tests.md) says how they are run.

{count} of {total} test functions took {seconds:.0f} of {all_seconds:.0f} s, added up over all tests.
{note}A row has all cases of a parametrized test: their number, the seconds of the slowest case, and
of all of them. Tests of the tier "quick" run in `make test`, those of "slow" in `make test-all`;
"both" means that `make test` runs the first cases only. `python tools/slowest_tests.py all.xml`
writes this page again, from a run of `make test-python PYTEST_ARGS=--junitxml=all.xml` and the
tests' docstrings.

| test | cases | seconds | all | tier | what it proves | why it takes so long |
|---|---:|---:|---:|---|---|---|
"""


class Test(NamedTuple):
    """Test with the times of its cases."""

    file: str
    name: str
    seconds: list[float]


class Description(NamedTuple):
    """Description of a test in its source."""

    tier: str
    proves: str
    cost: str


def read_times(paths: list[Path]) -> list[Test]:
    """Return the tests of JUnit files, without those that were skipped."""
    found: dict[tuple[str, str], list[float]] = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            if case.find("skipped") is None:
                file = case.get("classname", "").replace(".", "/") + ".py"
                name = case.get("name", "").partition("[")[0]
                found.setdefault((file, name), []).append(float(case.get("time", 0)))
    return [Test(*test, seconds) for test, seconds in found.items()]


def tier_of(function: ast.FunctionDef) -> str:
    """Return the tier of a test: quick, slow, or both."""
    for decorator in function.decorator_list:
        text = ast.unparse(decorator)
        if text.startswith("pytest.mark.slow"):
            return "both" if "keep" in text else "slow"
    return "quick"


def describe(test: Test) -> Description:
    """Return the description of a test in its source."""
    tree = ast.parse((ROOT / test.file).read_text(encoding="utf-8"))
    function = next(
        (n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == test.name), None
    )
    if function is None:
        return Description("", "", "")
    paragraphs = [
        " ".join(text.split()) for text in (ast.get_docstring(function) or "").split("\n\n")
    ]
    costs = [text[len("Cost:") :].strip() for text in paragraphs if text.startswith("Cost:")]
    return Description(tier_of(function), paragraphs[0], " ".join(costs))


def row(test: Test, description: Description) -> str:
    """Return a test's row of the table."""
    name = f"`{Path(test.file).name}::{test.name}`"
    cells = [
        name,
        str(len(test.seconds)),
        f"{max(test.seconds):.0f}",
        f"{sum(test.seconds):.0f}",
        description.tier,
        *(re.sub(r"\|", r"\\|", text) for text in description[1:]),
    ]
    return f"| {' | '.join(cells)} |\n"


def main() -> int:
    """Write the page; return 1 if a test in it lacks a docstring."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("junit", nargs="+", type=Path, help="JUnit files of one complete run")
    parser.add_argument("--count", type=int, default=40, help="tests in the page (default: 40)")
    parser.add_argument("--note", default="", help="a sentence about the run, for the page")
    options = parser.parse_args()
    tests = sorted(read_times(options.junit), key=lambda test: -max(test.seconds))
    slowest = tests[: options.count]
    rows, lacking = [], []
    for test in slowest:
        description = describe(test)
        rows.append(row(test, description))
        if not (description.proves and description.cost):
            lacking.append(f"{test.file}::{test.name}")
    head = HEAD.format(
        count=len(slowest),
        total=len(tests),
        note=options.note and f"{options.note}\n",
        seconds=sum(sum(test.seconds) for test in slowest),
        all_seconds=sum(sum(test.seconds) for test in tests),
    )
    PAGE.write_text(head + "".join(rows), encoding="utf-8")
    for name in lacking:
        print(f"no docstring with a paragraph 'Cost:': {name}", file=sys.stderr)
    return bool(lacking)


if __name__ == "__main__":
    sys.exit(main())
