"""Old names of public modules, which import the present modules and run with `python -m`."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from hipress import _aliases


@pytest.mark.parametrize("old, new", sorted(_aliases.RENAMED.items()))
def test_old_name_imports_the_same_module_with_a_warning(old, new):
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        found = importlib.import_module(old)
    assert found is importlib.import_module(new)


def test_submodule_of_an_old_name_is_not_loaded_twice():
    with pytest.warns(DeprecationWarning):
        old = importlib.import_module("hipress.casync.graph")
    assert old is importlib.import_module("hipress.topology.graph")


def test_missing_submodule_of_an_old_name_is_an_import_error():
    with pytest.raises(ModuleNotFoundError, match=r"hipress\.casync\.nothing"):
        importlib.import_module("hipress.casync.nothing")


def test_old_names_are_attributes_of_the_package():
    code = "import hipress; print(hipress.casync.TOPOLOGIES is not None, len(hipress.codecs()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.startswith("True "), done.stderr


@pytest.mark.parametrize("module", ["hipress.launcher", "hipress.compll.cli"])
def test_old_name_runs_as_a_program(module):
    command = [sys.executable, "-m", module, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "usage" in done.stdout.lower(), done.stderr


def test_old_class_name_is_the_same_class_with_a_warning():
    from hipress import topology

    with pytest.warns(DeprecationWarning, match=r"is now hipress\.topology\.NodeId"):
        assert topology.Node is topology.NodeId


def test_names_of_the_compression_module_are_those_of_the_package():
    from hipress.compression import Compressor, Param, codecs

    assert Compressor.__module__ == "hipress.compression.compressor"
    assert callable(codecs) and Param is not None
