"""Output of a running elastic job: a line for each view, and nothing that looks like an error."""

import pytest

from elastic_training import command
from harness.elastic import ElasticJob

pytest.importorskip("torch")

from hipress.elastic.membership.view import Member, View
from hipress.elastic.training import journal


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_a_death_is_one_line_of_rank_0_and_no_warning(tmp_path, victim):
    with ElasticJob(command(60), 3, env={"DIES": str(victim)}) as job:
        job.wait(120)
        first = 1 if victim == 0 else 0
        said = {slot: job.output(f"worker {slot}").splitlines() for slot in range(3)}
        assert said[2].pop() == said[first].pop() == "trained to step 60"  # the script's own
        first_view = "hipress: view 1: 3 workers begin"
        assert said[0][0] == first_view
        (line,) = said[first][first == 0 :]
        assert line.startswith("hipress: view 2: 2 workers go on after step "), line
        gone = f"; worker {victim} is gone: its process has ended; its residual, a norm of "
        assert gone in line and line.endswith(" when last compared, is discarded")
        assert said[2] == [] and said[victim] == [first_view] * (victim == 0)


def view(epoch, *slots, departed=()):
    members = tuple(Member(f"id {slot}", int(slot), "h", 1) for slot in slots)
    return View(epoch, members, departed=departed)


def test_a_view_in_words():
    four, two = view(1, "0", "1", "2", "3"), view(2, "0", "1")
    assert journal.describe(four, None, 0, {}) == "view 1: 4 workers begin"
    assert journal.describe(four, None, 7, {}) == "view 1: 4 workers go on after step 7"
    assert journal.describe(view(3, "2"), None, 7, {}) == (
        "view 3: 1 worker goes on after step 7; this one has joined"
    )
    assert journal.describe(four, two, 9, {}).endswith("; worker 2 has joined; worker 3 has joined")
    # One view between the two came to nothing, so not all reasons are known.
    left = view(4, "0", "1", departed=((four.members[3], "it left"),))
    assert journal.describe(left, four, 9, {"id 2": 0.5}) == (
        "view 4: 2 workers go on after step 9; worker 2 is gone; its residual, a norm of 0.5 when "
        "last compared, is discarded; worker 3 is gone: it left; its residual is discarded"
    )


def test_a_script_with_a_log_of_its_own_has_it_there(caplog, capsys):
    with caplog.at_level("INFO", logger="hipress"):
        journal.tell("view 1: 4 workers begin")
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert capsys.readouterr().err == ""
