"""Completes steps as an elastic agent and prints its views as JSON."""

import json
import os
import threading
import time

from hipress.elastic import Agent, Evicted

changed = threading.Event()
agent = Agent.from_environment(on_change=lambda view: changed.set())


def begin(view):
    changed.clear()
    agent.completed(view.step)
    print(
        json.dumps(
            {
                "what": "view",
                "at": time.time(),
                "epoch": view.epoch,
                "id": agent.id,
                "slots": [member.slot for member in view.members],
                "step": view.step,
                "boundary": view.boundary,
                "behind": len(view.behind),
                "joined": len(view.joined),
                "why": [why for _, why in view.departed],
            }
        ),
        flush=True,
    )
    return view, view.step


if os.environ.get("WORKER_FORKS") and os.fork() == 0:
    time.sleep(30)
    os._exit(0)
view, step = begin(agent.join(20))
while True:
    try:
        time.sleep(0.01)
        if not changed.is_set():
            step += 1
            agent.completed(step)
        newest = agent.view()
        ahead = newest is None or newest.boundary is not None and newest.boundary > step
        if changed.is_set() or newest is None or newest.epoch > view.epoch and not ahead:
            view, step = begin(agent.await_view(view.epoch, 20))
    except Evicted:
        print(json.dumps({"what": "evicted"}), flush=True)
        view, step = begin(agent.join(20))
