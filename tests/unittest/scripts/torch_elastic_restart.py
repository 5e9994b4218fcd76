"""Trains four steps under torchrun; rank 1 ends after the third.

Arguments: a folder, and the name of a file for the result.
"""

import os
import sys
import time

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp

import hipress.torch
from test_torch_ddp import bits, network, wrap
from test_torch_state import train

dist.init_process_group("gloo")
rank, folder = dist.get_rank(), sys.argv[1]
torch.set_num_threads(1)
model = network()
ddp, compression = wrap(model, "onebit")
if os.path.exists(folder + "/checkpoint/.metadata"):
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=folder + "/checkpoint")
    model.load_state_dict(state["model"])
    hipress.torch.load_checkpoint(compression, folder + "/checkpoint")
for step in range(compression.step, 4):
    train(ddp, rank, [step])
    if step == 1:
        dcp.save(
            {"model": model.state_dict(), "hipress": compression},
            checkpoint_id=folder + "/checkpoint",
        )
    if step == 2 and rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os._exit(9)
if rank == 0:
    torch.save(bits(model), folder + "/" + sys.argv[2])
dist.barrier()
# The other rank may still wait for the barrier's last message.
open(f"{folder}/{rank}.over", "w").close()
while not os.path.exists(f"{folder}/{1 - rank}.over"):
    time.sleep(0.02)
os._exit(0)
