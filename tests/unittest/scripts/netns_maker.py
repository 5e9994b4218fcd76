"""Makes a network namespace, prints its name and sleeps; argument: the checkout."""

import sys
import time

sys.path.insert(0, sys.argv[1])
from harness import netns

with netns.ShapedNetwork(1, rate=None) as network:
    print(network.namespace(0), flush=True)
    time.sleep(60)
