#!/usr/bin/env python3
"""The `compll` command under the name and with the flags of HiPress's published compiler.

python3 GCGen.py pse/TernGradEncode.pse -b
python3 GCGen.py pse/TernGradEncode.pse -w -r -f mxnet
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from hipress.compression.compiler.cli import main

if __name__ == "__main__":
    main()
