"""Suspends all processes of random MXNet and Keras jobs, as held_up.py does PyTorch's. Takes
minutes.

Not for CI. Gluon's Trainer and Keras's loops, with servers and without, in static and in elastic
jobs: each must end with 0 everywhere, and with the same weights on all workers.

    python tests/nightly/held_up_frameworks.py --jobs 40 --seed 1
"""

from __future__ import annotations

import sys

import havoc  # first: it finds the harness
import held_up

from harness.cluster import Cluster
from harness.elastic import ElasticJob
from harness.processes import Processes, base_environment
from hipress.topology import topologies

GLUON = havoc.SCRIPTS / "held_up_gluon.py"

GLUON_ELASTIC = havoc.SCRIPTS / "held_up_gluon_elastic.py"

KERAS = havoc.SCRIPTS / "held_up_keras.py"

KERAS_ELASTIC = havoc.SCRIPTS / "held_up_keras_elastic.py"

PROGRAMS = {
    "gluon": GLUON,
    "gluon elastic": GLUON_ELASTIC,
    "keras": KERAS,
    "keras elastic": KERAS_ELASTIC,
}


class Job(held_up.Job):
    """Job of MXNet or Keras."""

    deadline = 600
    """Deadline in seconds. A suspended process needs a minute to import a framework."""

    @classmethod
    def draw(cls, dice: held_up.random.Random) -> Job:
        """Draw a random job."""
        workers = dice.randint(2, 3)
        kind = dice.choice(["gluon", "gluon", "gluon elastic", "keras", "keras", "keras elastic"])
        env = {
            "HIPRESS_TLS": dice.choice(["auto", "on"]),
            "HIPRESS_STREAMS": dice.choice(["0", "3"]),
            "HIPRESS_SHARED_MEMORY": dice.choice(["auto", "off"]),
            "HIPRESS_START_TIMEOUT": "200",  # the frameworks' imports are also suspended
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        settings: dict[str, object] = {"type": dice.choice(["none", "onebit", "maxmin", "auto"])}
        if "elastic" in kind:
            settings["steps"] = 100 * dice.randint(1, 3)
            return cls(kind, workers, 0, settings, env, dice)
        servers = dice.choice([0, 1, 2])
        if not servers:
            flat = [
                t
                for t in topologies.names(servers=False)
                if not topologies.TOPOLOGIES[t].needs_devices_per_host
            ]
            env["HIPRESS_TOPOLOGY"] = dice.choice(flat)
        settings.update(
            steps=dice.randint(1, 60),
            width=dice.choice([32, 200, 700]),
            layers=dice.randint(1, 4),
            eager=dice.choice([False, True]),
            on_server=bool(servers) and dice.choice([False, True]),
        )
        return cls(kind, workers, servers, settings, env, dice)

    def start(self, env: dict[str, str]) -> Processes:
        """Start the job's processes."""
        program = PROGRAMS[self.kind]
        if "elastic" in self.kind:
            command = [sys.executable, str(program)]
            return ElasticJob(command, self.workers, self.workers, env, heartbeat_ms=12000)
        prefix = [sys.executable, *(["-m", "mxnet_hipress"] if self.kind == "gluon" else [])]
        return Cluster(program, self.workers, self.servers, env, prefix, base=base_environment())


if __name__ == "__main__":
    sys.exit(havoc.main(Job, __doc__, jobs=40))
