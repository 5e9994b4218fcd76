"""Imports the package that is the argument in a server whose job fails."""

import importlib
import sys

import hipress.runtime.node


class Failing:
    rank = 0

    def serve(self, *control):
        raise hipress.runtime.node.HipressError("worker 1 died")

    def abort(self):
        print("aborts", flush=True)


hipress.runtime.node.Node = Failing
importlib.import_module(sys.argv[1])
print("comes back")
