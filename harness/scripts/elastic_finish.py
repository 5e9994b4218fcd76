"""Worker that ends: slot 0's normally, the other one later.

Arguments: exit status of slot 1, or 'late' if it dies once and its successor comes too late.
"""

import os
import signal
import sys
import time

slot, restart = os.environ["HIPRESS_ELASTIC_SLOT"], os.environ["HIPRESS_ELASTIC_RESTART"]


def wait_until(condition):
    while not condition():
        time.sleep(0.02)


def after(condition):
    if slot == "0":
        wait_until(condition)
        with open("part", "w") as file:
            file.write(str(os.getppid()))
        os.rename("part", "supervisor")
        sys.exit()
    wait_until(lambda: os.path.exists("supervisor"))
    wait_until(lambda: not os.path.exists("/proc/" + open("supervisor").read()))


late = sys.argv[1] == "late"
if late:
    if slot + restart == "10":
        os.kill(os.getpid(), signal.SIGKILL)
    if slot == "1":
        open("again", "w").close()
after(lambda: not late or os.path.exists("again"))
sys.exit("no peers" if late else int(sys.argv[1]))
