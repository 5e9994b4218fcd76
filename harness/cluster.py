"""Real jobs (scheduler, servers, workers) as processes of this machine."""

from __future__ import annotations

import inspect
import secrets
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness import warm
from harness.processes import JobError, Processes, Result, base_environment, free_port

if TYPE_CHECKING:
    from harness.netns import ShapedNetwork

BOOT = (sys.executable, "-m", "mxnet_hipress.boot")
TEST_HEARTBEAT = {"HIPRESS_HEARTBEAT_TIMEOUT_MS": "3500"}
"""Short timeout for silent processes, so that tests of stopped ones are fast."""


def own_nodes(role: str, rank: int) -> int:
    """Return the node of a process: 0 for scheduler and servers, 1 + i for worker i."""
    return 1 + rank if role == "worker" else 0


class Cluster(Processes):
    """Running job, for a `with` statement.

    Args:
        worker: The workers' program: Python source, the path of a script, a function without
            arguments whose body is the program, or a whole command.
        worker_prefix: Command that runs the script.
        server_command: Command of the scheduler and of the servers.
        env: Variables for all processes; `worker_env(rank)` returns more for one worker.
        args: Arguments of the script.
        base: Environment to which those are added; None for a test's.
        node_of: Function that returns the network's node of a role ("scheduler", "server",
            "worker") and rank.
        loopback: Address of all processes without a network.
    """

    def __init__(
        self,
        worker: str | Path | Callable[[], None] | Sequence[str],
        workers: int = 2,
        servers: int = 2,
        env: Mapping[str, str] | None = None,
        worker_prefix: Sequence[str] = (sys.executable,),
        server_command: Sequence[str] = BOOT,
        args: Sequence[str] = (),
        worker_env: Callable[[int], Mapping[str, str]] | None = None,
        launched: bool = True,
        network: ShapedNetwork | None = None,
        priority: bool = False,
        base: Mapping[str, str] | None = None,
        node_of: Callable[[str, int], int] = own_nodes,
        loopback: str = "127.0.0.1",
    ) -> None:
        super().__init__(network, priority, loopback)
        self.port = 9091 if network else free_port()
        common = {
            **(base_environment(TEST_HEARTBEAT) if base is None else base),
            "DMLC_PS_ROOT_URI": self.address(0),
            "DMLC_PS_ROOT_PORT": str(self.port),
            "DMLC_NUM_WORKER": str(workers),
            "DMLC_NUM_SERVER": str(servers),
            "HIPRESS_SECRET": secrets.token_hex(32),
            **({"HIPRESS_LAUNCHED": "1"} if launched else {}),
            **(env or {}),
        }
        command = self._command(worker, worker_prefix, args)
        roles = [("scheduler", 0), *(("server", rank) for rank in range(servers))]
        roles += [("worker", rank) for rank in range(workers)]
        # Servers import MXNet for an optimizer. They can be forked like workers, because their
        # module imports it so that it does not take over the process.
        imports = warm.framework_of(command, {**common, "DMLC_ROLE": "worker"}, self.path)
        framework = imports if imports == "mxnet" and server_command == BOOT else None
        try:
            for role, rank in roles:
                node = node_of(role, rank)
                own = {"DMLC_ROLE": role, "DMLC_NODE_HOST": self.address(node)}
                if role != "scheduler":
                    own[f"DMLC_{role.upper()}_ID"] = str(rank)
                if role == "worker" and worker_env:
                    own.update(worker_env(rank))
                name = role if role == "scheduler" else f"{role} {rank}"
                what = command if role == "worker" else server_command
                env = {**common, **own}
                self.start(name, what, env, node, framework if role != "worker" else None)
        except BaseException:
            self.close()
            raise

    def _command(self, worker, prefix: Sequence[str], args: Sequence[str]) -> list[str]:
        if isinstance(worker, (list, tuple)):
            return list(worker)
        script = worker if isinstance(worker, Path) else self.path / "worker.py"
        if callable(worker):
            lines = inspect.getsource(worker).splitlines()
            first = next(i for i, line in enumerate(lines) if line.rstrip().endswith(":")) + 1
            worker = "\n".join(lines[first:])
        if isinstance(worker, str):
            script.write_text(textwrap.dedent(worker))
        return [*prefix, str(script), *args]


def run_cluster(
    worker: str | Path | Callable[[], None] | Sequence[str],
    workers: int = 2,
    servers: int = 2,
    timeout: float = 120,
    check: bool = True,
    **options: object,
) -> list[Result]:
    """Run a job to its end, with the arguments of Cluster.

    Args:
        timeout: Seconds until the job must have ended.
        check: Fail unless every process exits with 0.

    Returns:
        One Result per process: the scheduler, servers by rank, workers by rank.

    Raises:
        JobError: With all outputs.
    """
    with Cluster(worker, workers, servers, **options) as cluster:
        results = cluster.wait(timeout)
        if check and any(result.returncode for result in results):
            raise JobError(f"a process failed:\n{cluster.report()}")
    return results


def worker_outputs(results: Sequence[Result]) -> list[str]:
    """Return the workers' outputs, by rank."""
    return [result.output for result in results if result.name.startswith("worker")]
