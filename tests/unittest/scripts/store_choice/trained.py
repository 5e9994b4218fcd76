"""Trains twelve steps and prints the choice."""

from common import bits, make, show, train

node = make(feedback=False)
method_names, got, wanted = train(node, 12)
show(
    method_name=node.auto.controller.choice.method.name,
    bits=bits(got),
    said=node.explain().sentence,
)
