"""``python -m hipress.launch``: the same as ``tools/launch.py``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
