"""Commands as the ranks of a torch.distributed job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.processes import Processes, free_port


def environment_of(
    rank: int, world_size: int, port: int, address: str = "127.0.0.1", interface: str = "lo"
) -> dict[str, str]:
    """Return the variables by which ranks find each other, as torchrun sets them."""
    return {
        "MASTER_ADDR": address,
        "MASTER_PORT": str(port),
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(world_size),
        "GLOO_SOCKET_IFNAME": interface,
        "TP_SOCKET_IFNAME": interface,
    }


class TorchJob(Processes):
    """Command as the ranks of a running job, for a `with` statement.

    Their names are "rank 0", "rank 1", ... With a network, they are on its nodes in order, as
    torchrun places them: equally many on each.
    """

    def __init__(
        self, command: Sequence[str], ranks: int, env: Mapping[str, str], **options: object
    ) -> None:
        super().__init__(**options)
        network = self._network
        port = 29500 if network else free_port()
        try:
            for rank in range(ranks):
                own = environment_of(rank, ranks, port, self.address(0), self.interface)
                node = rank * network.nodes // ranks if network else 0
                self.start(f"rank {rank}", command, {**env, **own}, node)
        except BaseException:
            self.close()
            raise
