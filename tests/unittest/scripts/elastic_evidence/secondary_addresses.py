"""Adds addresses to lo, in a separate network namespace, and prints which are own ones."""

import subprocess

from hipress.elastic.membership import evidence

for words in ("addr add 192.0.2.7/24 dev lo", "addr add 192.0.2.8/24 dev lo", "link set lo up"):
    subprocess.run(["ip", *words.split()], check=True)
print([evidence.is_own_address(each) for each in ("192.0.2.7", "192.0.2.8", "198.51.100.1")])
