"""Worker that prints its process and sleeps until file "end" appears.

Environment variables:

- DIE: slots, or slots and restarts ("1.0 1.1"), whose processes end with exit status STATUS (1)
- LATE: seconds that a worker sleeps at its end, times its slot
- CHILD: it has a child in a separate session
- PRINTS_ENDS: it prints which processes of the job have ended
"""

import json
import os
import subprocess
import sys
import time

slot, restart = os.environ["HIPRESS_ELASTIC_SLOT"], os.environ["HIPRESS_ELASTIC_RESTART"]
agent = os.environ["HIPRESS_ELASTIC_AGENTS"].split(",")[int(slot)]
if "CHILD" in os.environ:
    subprocess.Popen(["sleep", "60"], start_new_session=True, stdout=subprocess.DEVNULL)
print("up", slot, restart, os.getpid(), agent, flush=True)
die = os.environ.get("DIE", "").split()
if slot in die or slot + "." + restart in die:
    sys.exit(int(os.environ.get("STATUS", 1)))
until = time.monotonic() + 60
while time.monotonic() < until and not os.path.exists("end"):
    time.sleep(0.02)
    if "PRINTS_ENDS" in os.environ and os.path.exists(os.environ["HIPRESS_ELASTIC_ENDED"]):
        with open(os.environ["HIPRESS_ELASTIC_ENDED"]) as file:
            endings = json.load(file)
        print("ends", {slot: end[0] for slot, end in endings.items()}, endings["1"][1:], flush=True)
    print("alive", flush=True)
time.sleep(float(os.environ.get("LATE", 0)) * int(slot))
