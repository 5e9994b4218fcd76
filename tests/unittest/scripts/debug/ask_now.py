"""Runs `hipress debug --now` for processes that write to the folder given as argument."""

import pathlib
import sys

from hipress.cli import main
from hipress.diagnostics import debug

all_processes, folder = debug.processes, pathlib.Path(sys.argv[1])
debug.processes = lambda: [one for one in all_processes() if one.folder == folder]
sys.exit(main.main(["debug", "--now"]))
