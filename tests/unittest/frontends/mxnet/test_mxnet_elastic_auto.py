"""Type "auto" in elastic MXNet jobs: one choice for all workers, which outlives them."""

import pytest

from elastic_choice import (
    METHOD_NAMES,
    check_a_death_while_they_measure,
    check_that_the_choice_stays,
    start,
)
from scripts import SCRIPTS

pytest.importorskip("mxnet_hipress")

PROGRAM = SCRIPTS / "mxnet_elastic_auto.py"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gradients", "store", "rounds"])
def test_who_is_left_and_who_joins_go_on_with_the_choice(kind):
    check_that_the_choice_stays(start(PROGRAM, kind), METHOD_NAMES[kind])


@pytest.mark.parametrize("kind", ["adam", "rounds"])
def test_a_death_while_they_measure(kind):
    check_a_death_while_they_measure(PROGRAM, kind)
