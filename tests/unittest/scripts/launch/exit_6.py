"""Worker 1 exits with 6."""

import os
import time

if os.environ.get("DMLC_WORKER_ID") == "1":
    os._exit(6)
time.sleep(9)
