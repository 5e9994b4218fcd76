"""Eight threads write the file that is the argument, each with its own text."""

import sys
import threading

from hipress.base import files

texts = [str(i) * 100_000 for i in range(8)]
threads = [threading.Thread(target=files.write, args=(sys.argv[1], "plan", t)) for t in texts]
[t.start() for t in threads]
[t.join() for t in threads]
assert open(sys.argv[1]).read() in texts
