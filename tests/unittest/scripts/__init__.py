"""Programs that tests run as separate processes, in a folder for each test file.

A test passes parameters as arguments or environment variables. Programs of one folder share code in
its ``common.py``. The folder of the tests is on the path of these processes (``conftest.py``), so
programs can also import the helper modules that tests use. Tests themselves import only
``SCRIPTS``, the path of this folder.
"""

from pathlib import Path

SCRIPTS = Path(__file__).parent
