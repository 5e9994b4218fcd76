"""Runs the launcher without this checkout on the path of its jobs.

Arguments: a folder to import from, and its own.
"""

import sys

sys.path.insert(0, sys.argv[1])
from hipress.launch import cli, job

job.with_source_tree = lambda env: env
sys.exit(cli.main(sys.argv[2:]))
