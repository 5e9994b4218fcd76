"""A small elastic training for tests that watch a job from outside: its dumps, lines, timelines."""

import sys
import textwrap

#: Trains to a step. LATE: a slot and a view ("2 2") in which it stops for 100 s in the eighth step,
#: with HOLDS so that no other thread of Python runs.
PROGRAM = """
    import ctypes
    import os
    import sys
    import time

    import torch

    import hipress.torch.elastic as elastic

    torch.set_num_threads(1)
    slot = os.environ["HIPRESS_ELASTIC_SLOT"]
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    state = elastic.State(model, optimizer, "onebit", min_size=256, check_every=5, timeout=60)

    @elastic.run
    def train(state):
        begin = state.step
        while state.step < int(sys.argv[1]):
            if os.environ.get("LATE") == f"{slot} {state.epoch}" and state.step == begin + 7:
                print("late", flush=True)
                # PyDLL: with the interpreter's lock.
                ctypes.PyDLL(None).sleep(100) if "HOLDS" in os.environ else time.sleep(100)
            state.optimizer.zero_grad()
            model(torch.ones(8, 64)).square().mean().backward()
            state.optimizer.step()
            state.commit()
            time.sleep(0.01)

    train(state)
"""


def command(folder, steps=100_000):
    """Writes the program into a folder; returns a worker's command."""
    script = folder / "train.py"
    script.write_text(textwrap.dedent(PROGRAM))
    return [sys.executable, str(script), str(steps)]
