"""Files with the states of compression of a store."""

from __future__ import annotations

import warnings

from mxnet.base import MXNetError

from hipress.runtime import states
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._errors import sentences
from mxnet_hipress._job_store import JobStore


class SavedStore(JobStore):
    """Store that can save residuals and other states of compression.

    Args:
        name: The store's type as scripts see it, for example "dist_sync".
    """

    def _settle(self) -> None:
        """Block until all pushes and pulls have completed."""
        raise NotImplementedError

    def save_compression_states(self, fname: str) -> None:
        """Save the states of compression: residuals, momentum of codecs, counters of random ones.

        Every worker calls it after the same step. Each worker writes `fname`.worker-RANK; worker
        0's file also holds the servers' states. Without states no file is written. Blocks.

        Raises:
            MXNetError: If the file cannot be written. An existing file is then unchanged.
        """
        self._settle()
        with sentences():
            states.save(self._node, fname, *self._range())

    def load_compression_states(self, fname: str) -> None:
        """Load states saved by save_compression_states in a job of the same shape.

        Training then continues bit for bit. Every worker calls it when all keys are initialized.
        Blocks.

        Raises:
            MXNetError: If the file is missing or incomplete, or if the job's shape or keys differ.
                This worker's states are then unchanged.
        """
        if not self._load_compression(fname):
            path = states.path_of(fname, self.rank)
            raise MXNetError(f"cannot read the compression states {path}: there is no such file")

    def resume_compression(self, fname: str) -> None:
        """Load states saved by save_compression_states if they exist and match this job.

        Otherwise, issue a warning. Blocks.
        """
        try:
            lost = not self._load_compression(fname) and self._job.compresses
            why = f"there is no {states.path_of(fname, self.rank)}" if lost else ""
        except MXNetError as error:
            if self._node.failure():
                raise
            why = str(error)
        if why:
            warnings.warn(f"compression starts without what it remembered: {why}", stacklevel=2)

    def _load_compression(self, fname: str) -> bool:
        self._settle()
        with sentences():
            parts = states.read(self._node, fname)
            if parts is not None:
                states.load(self._node, parts, *self._range())
        return parts is not None

    def _range(self) -> tuple[int, int]:
        """Return the first and last number of this store's keys."""
        return self._number << STORE_SHIFT, (self._number + 1 << STORE_SHIFT) - 1
