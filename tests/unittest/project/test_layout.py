"""Names of classes and modules in python/hipress: each can be found by its name."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[3] / "python" / "hipress"
MODULES = [path for path in PACKAGE.rglob("*.py") if path.stem != "__init__"]
CLASS = re.compile(r"^ *class (\w+)(?:\(([^)]*)\))?:", re.MULTILINE)
ADAPTERS = {"DiLoCo": "DiLoCoMethods", "State": "TrainingState"}
"""Class names that several front ends have, with the protocol that these classes implement.

docs/contributing/architecture.md also lists them.
"""


def classes() -> dict[str, list[tuple[Path, set[str]]]]:
    """Return the file and the names of the bases of each class, by its name."""
    found = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        for name, bases in CLASS.findall(path.read_text(encoding="utf-8")):
            found[name].append((path, set(re.findall(r"\w+", bases))))
    assert len(found) > 100
    return found


def ancestors(names: set[str], found: dict[str, list[tuple[Path, set[str]]]]) -> set[str]:
    """Return the names of these classes and of all their bases."""
    bases = {base for name in names for _, bases in found.get(name, ()) for base in bases} - names
    return names | ancestors(bases, found) if names else names


def test_class_names_are_unique_except_adapters_of_one_protocol():
    found = classes()
    repeated = {name for name, places in found.items() if len(places) > 1}
    assert repeated == set(ADAPTERS)
    for name, protocol in ADAPTERS.items():
        folders = [path.relative_to(PACKAGE).parts[0] for path, _ in found[name]]
        assert sorted(folders) == ["tensorflow", "torch"]
        for path, bases in found[name]:
            assert protocol in ancestors(bases, found), path


def test_module_names_occur_at_most_twice():
    count = Counter(path.stem for path in MODULES)
    assert not [name for name, times in count.items() if times > 2]


def test_package_has_at_most_eight_modules_beside_its_folders():
    assert sum(path.parent == PACKAGE for path in MODULES) <= 8
