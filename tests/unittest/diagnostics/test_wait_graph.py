"""Culprits of waits, found in synthetic dumps."""

from __future__ import annotations

import json

from hipress.diagnostics import debug
from hipress.diagnostics.wait_graph import WaitGraph


def dump(node, keys=(), calls=(), **more):
    values = {
        "format": debug.FORMAT,
        "version": debug.VERSION,
        "reason": "a test",
        "time": 1000.0,
        "host": "here",
        "pid": 1,
        "process_nodes": 1,
        "node": node,
        "workers": 3,
        "servers": 0,
        "ranks": "",
        "job": "127.0.0.1:9",
        "started": True,
        "failure": "",
        "dead": [],
        "left": [],
        "links": [{"node": "worker 1", "silent": 0.5}],
        "calls": list(calls),
        "keys": list(keys),
        "events": [[999.0, 1, 2, 0, "send", "done", "worker 1"]],
    }
    return {**values, **more}


def key(number, pushed, waits_for=(), iteration=5, **more):
    begun = {"iteration": iteration, "seconds": 2.0, "pushed": pushed >= iteration, **more}
    begun["waits_for"] = [{"node": node, "messages": 1, "first_hand": True} for node in waits_for]
    pending = waits_for or more
    return {
        "key": number,
        "name": f"w{number}",
        "channel": 0,
        "pushes": True,
        "pushed": pushed,
        "locked": False,
        "iterations": [begun] if pending else [],
    }


def sentences(tmp_path, *dumps):
    paths = []
    for number, values in enumerate(dumps):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(json.dumps(values))
    found = debug.load_all(paths)
    (nodes,) = debug.latest_jobs(found, max(dump.time for dump in found))
    return WaitGraph(nodes).sentences()


def test_who_waits_itself_is_not_to_blame(tmp_path):
    assert sentences(
        tmp_path,
        dump("worker 0", [key(1, 5, ["worker 1"]), key(2, 5)]),
        dump("worker 1", [key(1, 4), key(2, 5, ["worker 2"])]),
        dump("worker 2", [key(1, 5), key(2, 4)]),
    ) == ["worker 2 has not pushed iteration 5 of 'w2'; worker 1 waits for it"]


def test_two_that_push_in_different_orders(tmp_path):
    (found,) = sentences(
        tmp_path,
        dump("worker 0", [key(1, 5, ["worker 1"]), key(2, 4)]),
        dump("worker 1", [key(1, 4), key(2, 5, ["worker 0"])]),
        dump("worker 2"),
    )
    assert found == (
        "worker 0 and worker 1 wait for one another: "
        "worker 0 has not pushed iteration 5 of 'w2'; worker 1 waits for it; "
        "worker 1 has not pushed iteration 5 of 'w1'; worker 0 waits for it"
    )


def test_a_circle_of_messages(tmp_path):
    (found,) = sentences(
        tmp_path,
        dump("worker 0", [key(1, 5, ["worker 1"])]),
        dump("worker 1", [key(1, 5, ["worker 0"])]),
        dump("worker 2", [key(1, 5)]),
    )
    assert found.startswith("worker 0 and worker 1 wait in a circle for messages of iteration 5")


def test_a_node_without_a_dump(tmp_path):
    found = sentences(
        tmp_path,
        dump("worker 0", [key(1, 5, ["worker 1"])]),
        dump("worker 1", [key(1, 5, ["worker 2"])]),
    )
    assert found == ["worker 2 has no dump; worker 0 and worker 1 wait for it"]


def test_who_computes_sends_or_has_sent(tmp_path):
    running = {"running": [{"op": "encode", "partition": 3}]}
    sending = {"sending_to": [{"node": "worker 0", "messages": 1, "first_hand": False}]}
    waiting = dump("worker 0", [key(1, 5, ["worker 1"])])
    for theirs, said in [
        (key(1, 5, **running), "computes (encode of partition 3) for iteration 5 of 'w1'"),
        (key(1, 5, **sending), "is sending to worker 0 for iteration 5 of 'w1'"),
        (key(1, 5), "has sent worker 0 all (it is on its way) for iteration 5 of 'w1'"),
    ]:
        assert sentences(tmp_path, waiting, dump("worker 1", [theirs]), dump("worker 2")) == [
            f"worker 1 {said}; worker 0 waits for it"
        ]


def test_ranks_have_their_users_names(tmp_path):
    found = sentences(
        tmp_path,
        dump("worker 0", [key(1, 5, ["worker 1"])], ranks="2,7", workers=2),
        dump("worker 1", [key(1, 4)], ranks="2,7", workers=2),
    )
    assert found == ["rank 7 has not pushed iteration 5 of 'w1'; rank 2 waits for it"]


def test_a_job_that_has_not_started(tmp_path):
    call = {"kind": "start", "about": "", "seconds": 3.0}
    found = sentences(
        tmp_path,
        dump(
            "the scheduler",
            scheduler={"phase": "registering", "missing": "2 of 3 workers", "barriers": []},
        ),
        dump("a worker", calls=[call], job="127.0.0.1:9", started=False),
    )
    assert found == ["the job has not started: it waits for 2 of 3 workers"]


def test_only_the_newest_dumps_count(tmp_path):
    old = dump("worker 2", [key(1, 4)], time=100.0)
    found = sentences(
        tmp_path,
        old,
        dump("worker 0", [key(1, 5, ["worker 1"])], time=900.0),
        dump("worker 0", [key(1, 5)]),
        dump("worker 1", [key(1, 5)]),
    )
    assert found == []


def test_all_have_made_a_call_that_is_not_answered(tmp_path):
    def workers(kind, about, servers=0):
        call = {"kind": kind, "about": about, "seconds": 9.0}
        return [dump(f"worker {rank}", calls=[call], servers=servers) for rank in range(3)]

    what = "has not confirmed key 'w', which all workers have begun"
    everybody = "worker 0, worker 1 and worker 2 wait for it"
    assert sentences(tmp_path, *workers("key", "w")) == [
        f"worker 0 {what}; worker 1 and worker 2 wait for it"
    ]
    server = dump("server 0", servers=1)
    assert sentences(tmp_path, *workers("key", "w", 1), server) == [f"server 0 {what}; {everybody}"]
    assert sentences(tmp_path, *workers("key", "w", 1)) == [f"server 0 has no dump; {everybody}"]
    scheduler = dump("the scheduler", scheduler={"phase": "running", "missing": "", "barriers": []})
    assert sentences(tmp_path, *workers("barrier", "all workers"), scheduler) == [
        f"the scheduler has not released the barrier of all workers; {everybody}"
    ]
