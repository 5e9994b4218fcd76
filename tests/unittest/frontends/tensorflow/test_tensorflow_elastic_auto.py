"""Type "auto" in elastic Keras jobs: one choice for all workers, which outlives them."""

import pytest

from elastic_choice import (
    METHOD_NAMES,
    check_a_death_while_they_measure,
    check_that_the_choice_stays,
    start,
)
from harness.marks import needs_tensorflow
from scripts import SCRIPTS

pytestmark = [needs_tensorflow, pytest.mark.timeout(170)]

PROGRAM = SCRIPTS / "tensorflow_elastic_auto.py"


@pytest.mark.slow
def test_who_is_left_and_who_joins_go_on_with_the_choice():
    check_that_the_choice_stays(start(PROGRAM, "gradients"), METHOD_NAMES["gradients"])


@pytest.mark.slow(keep=1)
@pytest.mark.parametrize("kind", ["adam", "rounds"])
def test_a_death_while_they_measure(kind):
    check_a_death_while_they_measure(PROGRAM, kind)
