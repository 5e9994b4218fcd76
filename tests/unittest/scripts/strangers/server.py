"""A server that may have few open files, of which another thread wants more."""

import resource
import sys
import threading
import time

from hipress.runtime.node import Node

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))


def open_files():  # as other code of the process may, for example an optimizer
    while True:
        try:
            files = [open("/dev/null") for _ in range(8)]
        except OSError as error:
            print("cannot open a file:", error.strerror, flush=True)
            return
        for file in files:
            file.close()
        time.sleep(0.01)


threading.Thread(target=open_files, daemon=True).start()
Node().serve()
