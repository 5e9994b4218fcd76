"""Programs of the workers whose traffic ``test_wire.py`` and ``test_listeners.py`` examine.

Each sends gradients whose bytes are easy to recognize: the float32 number with the bytes of MARK.
"""

import struct

MARK = b"MARK"
VALUE = struct.unpack("<f", MARK)[0]
