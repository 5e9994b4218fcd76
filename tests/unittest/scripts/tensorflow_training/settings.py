"""Checks compression settings in a job of one; argument: a plan."""

import sys

import tensorflow as tf

import hipress.tensorflow as hvd
from common import refused


def tape(**compression):
    return lambda: hvd.DistributedGradientTape(tf.GradientTape(), compression)


def wrong(sentence, **compression):
    refused(sentence, tape(**compression), hvd.HipressError)


wrong("onebit", type="nobit")
wrong("has no parameter", type="onebit", ratio=0.1)
wrong("ratio", type="dgc", ratio=7)
wrong("min_size", type="onebit", min_size=-1)
wrong("colocated, ring", type="onebit", topology="circle")
wrong("pull", type="onebit", pull="sometimes")
wrong("number of partitions", type="onebit", plan=sys.argv[1])
wrong("plan", type="onebit", plan="nowhere")
tape(type="dgc", ratio=0.01, min_size=10, topology="PS", pull="same", plan="auto")()
refused("a job has one compression", tape(type="onebit"))
print("all checked")
