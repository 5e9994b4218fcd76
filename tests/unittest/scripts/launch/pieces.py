"""Writes lines in pieces."""

import os

for i in range(1500):
    text = f"{i}:" + "abcdefgh" * (i % 40)
    os.write(1, text[:7].encode())
    os.write(1, (text[7:] + "\n").encode())
os.write(1, b"the end")
