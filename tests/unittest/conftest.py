"""What all tests share."""

from harness import warm

warm.enable()
