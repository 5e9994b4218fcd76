"""Workers of an elastic torch job, started one by one, so that a test can end any of them."""

from __future__ import annotations

import json
import secrets
import signal
from collections.abc import Mapping, Sequence

from harness.processes import Processes, base_environment, free_port


class ElasticJob(Processes):
    """Workers of a running elastic job, for a `with` statement. They are "worker 0", ...

    Args:
        command: Command of each worker.
        min_workers: Number of workers below which all wait for more.
        env: Further variables.
    """

    def __init__(
        self,
        command: Sequence[str],
        workers: int,
        min_workers: int = 2,
        env: Mapping[str, str] | None = None,
        heartbeat_ms: int = 5000,
        **options: object,
    ) -> None:
        from hipress.base.addresses import join

        super().__init__(**options)
        self.command, self._restarts = command, [0] * workers
        self._latest: dict[str, str] = {}
        network = self._network
        agents = [
            join(self.address(slot), 29700 if network else free_port()) for slot in range(workers)
        ]
        own = {
            "HIPRESS_SECRET": secrets.token_hex(32),
            "HIPRESS_ELASTIC_AGENTS": ",".join(agents),
            "HIPRESS_ELASTIC_MIN_WORKERS": str(min_workers),
            "HIPRESS_HEARTBEAT_TIMEOUT_MS": str(heartbeat_ms),
            "HIPRESS_ELASTIC_LOG": str(self.path / "journal"),
        }
        # Not after own: a PYTHONPATH in env must not hide this checkout's packages.
        self._env = base_environment({**own, **(env or {})})
        try:
            for slot in range(workers):
                self._launch(slot)
        except BaseException:
            self.close()
            raise

    def _launch(self, slot: int, command: Sequence[str] | None = None) -> None:
        own = {
            "HIPRESS_ELASTIC_SLOT": str(slot),
            "HIPRESS_ELASTIC_RESTART": str(self._restarts[slot]),
        }
        again = self._restarts[slot]
        name = f"worker {slot}" + (f" again {again}" if again else "")
        self._latest[f"worker {slot}"] = name
        command = command or self.command
        self.start(name, command, {**self._env, **own}, slot if self._network else 0)

    def present(self, slot: int) -> str:
        """Return the name of a slot's present process."""
        return self._latest[f"worker {slot}"]

    def kill(self, slot: int, number: int = signal.SIGKILL) -> None:
        """Send a signal to the present process of a slot."""
        self.signal(self.present(slot), number)

    def restart(self, slot: int, command: Sequence[str] | None = None) -> None:
        """Start a slot's process again after its end, optionally with another command."""
        self._restarts[slot] += 1
        self._launch(slot, command)

    def journal(self, slot: int) -> list[dict]:
        """Return the events in the journal of a slot's processes."""
        path = self.path / "journal" / f"worker-{slot}.jsonl"
        if not path.exists():
            return []
        lines = path.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def copies(self, slot: int) -> int:
        """Return how often a slot's processes copied states, at the start and to join."""
        return sum(event["event"] == "copied" for event in self.journal(slot))

    def step(self, slot: int) -> int:
        """Return the last step that a slot's processes have completed."""
        return max((e["step"] for e in self.journal(slot) if e["event"] == "step"), default=0)
