"""Unpickling: only named exceptions in the package unpickle data that another process may have
written."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDERS = ("python", "examples", "benchmarks", "tools")
MODULES = {"pickle", "_pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}
OBJECT_COLLECTIVES = {
    "all_gather_object",
    "gather_object",
    "broadcast_object_list",
    "scatter_object_list",
    "send_object_list",
    "recv_object_list",
}
ALLOWED = {
    # MXNet's optimizers are pickles. Servers take them from workers over connections that are
    # authenticated by the job's secret; see docs/guides/security.md.
    "python/mxnet_hipress/server.py": 1,
    # The same applies to the workers of an elastic job, and to the user's own files.
    "python/hipress/elastic/training/arrays.py": 1,
    "python/mxnet_hipress/_states.py": 4,
}
"""Calls that unpickle, by file."""


def unpickles(call):
    """Return whether a call may run code that its argument contains."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    options = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    return (
        name in OBJECT_COLLECTIVES
        or name == "Unpickler"
        or (name in ("load", "loads") and owner.rpartition(".")[2] in MODULES)
        or (owner == "torch" and name == "load" and options.get("weights_only") != "True")
        or options.get("allow_pickle") == "True"
    )


def calls_in(source):
    """Return the lines of calls that unpickle, and of imports that would hide such calls."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and unpickles(node):
            yield node.lineno
        elif isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            hidden = node.module in MODULES and names & {"load", "loads", "Unpickler"}
            if hidden or names & OBJECT_COLLECTIVES or (node.module == "torch" and "load" in names):
                yield node.lineno


@pytest.mark.parametrize(
    "source, lines",
    [
        ("import pickle\npickle.loads(data)", [2]),
        ("from pickle import loads", [1]),
        ("dist.all_gather_object(found, mine)", [1]),
        ("distributed_c10d.broadcast_object_list(found)", [1]),
        ("torch.load(path)\ntorch.load(path, weights_only=False)", [1, 2]),
        ("torch.load(path, weights_only=True)\njson.loads(text)\npickle.dumps(value)", []),
        ("numpy.load(path, allow_pickle=True)", [1]),
    ],
)
def test_calls_that_unpickle_are_found(source, lines):
    assert list(calls_in(source)) == lines


def test_only_named_files_unpickle():
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            lines = list(calls_in(path.read_text()))
            if lines:
                found[str(path.relative_to(ROOT))] = lines
    counts = {path: len(lines) for path, lines in found.items()}
    assert counts == ALLOWED, f"these calls can run code of other processes: {found}"
