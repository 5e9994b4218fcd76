"""Server 0 kills itself; all others fail when it has ended. Argument: a file."""

import os
import signal
import sys
import time

pid = sys.argv[1]
if os.environ.get("DMLC_SERVER_ID") == "0":
    with open(pid + ".part", "w") as file:
        file.write(str(os.getpid()))
    os.rename(pid + ".part", pid)
    time.sleep(0.4)
    os.kill(os.getpid(), signal.SIGKILL)
while not os.path.exists(pid) or os.path.exists("/proc/" + open(pid).read()):
    time.sleep(0.01)
sys.exit("lost server 0")
