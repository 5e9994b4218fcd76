"""Random schedules of the membership protocol, 10,000, with other seeds every day. Minutes.

python tests/nightly/elastic_membership.py --schedules 1000 --first 0
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.simulation import membership  # noqa: E402

SCHEDULES = 10_000

if __name__ == "__main__":
    if "--schedules" not in sys.argv:
        sys.argv += ["--schedules", str(SCHEDULES)]
    if "--first" not in sys.argv:
        sys.argv += ["--first", str(int(time.time()) // 86400 * SCHEDULES)]
    sys.exit(membership.main())
