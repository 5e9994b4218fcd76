"""Executes a statement in one process of a job, and another statement in all others.

Arguments: an environment variable, its value in that process, both statements.
"""

import os
import signal  # noqa: F401  # for statements
import sys
import time  # noqa: F401  # for statements

name, value, then, otherwise = sys.argv[1:5]
exec(then if os.environ.get(name) == value else otherwise)
