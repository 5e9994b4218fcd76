"""Old names of public modules, which import the modules of today with a DeprecationWarning.

`import hipress.casync.graph` gives the module hipress.topology.graph itself, not a copy.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from types import CodeType, ModuleType

RENAMED = {
    "hipress.casync": "hipress.topology",
    "hipress.compll": "hipress.compression.compiler",
    "hipress.elastic.agent": "hipress.elastic.membership.agent",
    "hipress.elastic.errors": "hipress.elastic.membership.membership_errors",
    "hipress.elastic.settings": "hipress.elastic.membership.settings",
    "hipress.elastic.training.loop": "hipress.elastic.training.view_loop",
    "hipress.elastic.view": "hipress.elastic.membership.view",
    "hipress.files": "hipress.base.files",
    "hipress.launcher": "hipress.launch",
    "hipress.node": "hipress.runtime.node",
    "hipress.secopa.explanation": "hipress.autotune.explanation",
    "hipress.secopa": "hipress.planning",
}
"""Old name of each module or package to its present name. The first that fits counts."""


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old name of a module that exists; None for all others."""
        name = present_name(fullname)
        found = importlib.util.find_spec(name) if name else None
        if found is None:
            return None
        spec = importlib.machinery.ModuleSpec(fullname, self, origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def get_code(self, fullname: str) -> CodeType | None:
        """Return the code of the module, which `python -m` runs."""
        found = importlib.util.find_spec(present_name(fullname) or "")
        return found.loader.get_code(found.name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return an empty module, which exec_module replaces."""
        return ModuleType(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the present name in the place of the empty one."""
        name = present_name(module.__name__)
        assert name is not None, module.__name__
        warnings.warn(f"{module.__name__} is now {name}", DeprecationWarning, stacklevel=2)
        sys.modules[module.__name__] = importlib.import_module(name)


def present_name(name: str) -> str | None:
    """Return the present name of a module, or None if `name` is not an old one."""
    if not name.startswith("hipress."):
        return None  # this runs for every import of the process
    for old, new in RENAMED.items():
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return None


def install() -> None:
    """Make the old names importable in this process."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        # Before the path-based finder, which would load a second copy of a submodule.
        sys.meta_path.insert(0, AliasFinder())
