#!/usr/bin/env python3
"""Writes SeCoPaPlan.txt: `SeCoPa.py --input input.txt --topology PS --nnodes 4`.

The same as `hipress plan`, which has the options; works from the source tree as it is.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from hipress.cli.main import main

if __name__ == "__main__":
    main(["plan", *sys.argv[1:]])
