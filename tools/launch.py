#!/usr/bin/env python3
"""Starts a distributed job; `launch.py --help` tells how. Works from the source tree as it is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from hipress.launch.cli import main

if __name__ == "__main__":
    sys.exit(main())
