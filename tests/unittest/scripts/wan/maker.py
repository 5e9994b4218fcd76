"""Makes a network, prints its namespace and router, and sleeps; argument: the checkout."""

import sys
import time

sys.path.insert(0, sys.argv[1])
from harness import wan

with wan.WideAreaNetwork(1, "delay=1ms") as network:
    print(network.namespace(0), network._router.pid, flush=True)
    time.sleep(60)
