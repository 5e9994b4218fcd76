"""Trains twelve steps and prints the choice."""

from common import bits, make, show, train

node = make(feedback=False)
ways, got, wanted = train(node, 12)
show(way=node.auto.controller.choice.method.name, bits=bits(got), said=node.explain().sentence)
