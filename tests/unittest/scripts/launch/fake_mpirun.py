"""Starts ranks as an mpirun or srun does, and ends all when one fails.

The first argument has its settings, as JSON: the version that it prints, the variable with a rank's
number, the program's name in arguments, a file for arguments and environment, and whether all ranks
get the standard input.
"""

import json
import os
import subprocess
import sys
import time

settings = json.loads(sys.argv[1])
args = sys.argv[2:]
if "--version" in args:
    print(settings["version"])
    sys.exit(0)
program = args.index(settings["program"])
hosts = None
if os.environ.get("SLURM_HOSTFILE"):
    with open(os.environ["SLURM_HOSTFILE"]) as file:
        hosts = file.read().split()
with open(settings["record"], "a") as file:
    call = {"args": args[:program], "all": args, "hosts": hosts, "env": dict(os.environ)}
    file.write(json.dumps(call) + "\n")
number = int([a for a in args if a.isdigit() or a.startswith("--ntasks=")][0].split("=")[-1])
to_all = settings["to_all"]
ranks = [
    subprocess.Popen(
        args[program:],
        env=dict(os.environ, **{settings["variable"]: str(rank)}),
        stdin=subprocess.PIPE if to_all else None if rank == 0 else subprocess.DEVNULL,
    )
    for rank in range(number)
]
if to_all:
    data = sys.stdin.buffer.read()
    for rank in ranks:
        rank.stdin.write(data)
        rank.stdin.close()
status = 0
while ranks:
    for rank in list(ranks):
        if rank.poll() is not None:
            ranks.remove(rank)
            status = status or rank.returncode
            if status:
                for other in ranks:
                    other.terminate()
    time.sleep(0.01)
sys.exit(status)
