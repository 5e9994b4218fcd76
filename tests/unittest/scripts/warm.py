"""Prints arguments, names, folders and the session of this process."""

import os
import sys

import helper_of_a_test  # noqa: F401
import torch  # noqa: F401

print(sys.argv[-2:], __name__, __file__ if "__file__" in globals() else None)
print(os.environ["OF_ITS_OWN"], os.path.realpath(os.getcwd()))
print(os.getsid(0) == os.getpid(), sys.path[0])
