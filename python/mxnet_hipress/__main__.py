"""Runner of unmodified MXNet scripts, whose distributed key-value stores become HiPress's.

Usage: `python -m mxnet_hipress SCRIPT ARGS`, or `python -m mxnet_hipress -m MODULE ARGS`.
"""

from __future__ import annotations

import os
import runpy
import sys

import mxnet_hipress
from mxnet_hipress import _job, elastic_store


def main() -> None:
    """Run the script named on the command line as __main__, with the arguments that follow."""
    arguments = sys.argv[1:]
    as_module = arguments[:1] == ["-m"]
    if as_module:
        arguments = arguments[1:]
    if not arguments or arguments[0].startswith("-"):
        sys.exit("usage: python -m mxnet_hipress SCRIPT ARGS | -m MODULE ARGS")
    mxnet_hipress.install()
    sys.argv = arguments
    try:
        if as_module:
            sys.path[0] = os.getcwd()
            runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        else:
            sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            status = end.code if isinstance(end.code, int) else 1
            elastic_store.abort(status)
            node = _job.current()
            if node is not None:
                node.abort(status)
        raise


main()
