"""Old names of public modules, which import the modules of today with a DeprecationWarning.

`import hipress.casync.graph` gives the module hipress.topology.graph itself, not a copy.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

RENAMED = {
    "hipress.casync": "hipress.topology",
    "hipress.files": "hipress.base.files",
    "hipress.compll": "hipress.compression.compiler",
    "hipress.launcher": "hipress.launch",
    "hipress.node": "hipress.runtime.node",
    "hipress.secopa": "hipress.planning",
}
"""Old name of each module or package to its present name."""


class AliasFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder and loader of modules by their old names."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old name; None for all others."""
        return importlib.machinery.ModuleSpec(fullname, self) if present_name(fullname) else None

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
    for old, new in RENAMED.items():
        if name == old or name.startswith(old + "."):
            return new + name[len(old) :]
    return None


def install() -> None:
    """Make the old names importable in this process."""
    if not any(isinstance(finder, AliasFinder) for finder in sys.meta_path):
        # Before the path-based finder, which would load a second copy of a submodule.
        sys.meta_path.insert(0, AliasFinder())
