"""Runs the launcher; arguments: a folder to import from, seconds to wait for servers, its own."""

import sys

sys.path.insert(0, sys.argv[1])
from hipress.launch import cli, failures

failures.LINGER_SECONDS = float(sys.argv[2])
sys.exit(cli.main(sys.argv[3:]))
