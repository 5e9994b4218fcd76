"""What a store keeps in files of what compression remembers."""

from __future__ import annotations

import warnings

from mxnet.base import MXNetError

from hipress.runtime import states
from mxnet_hipress._commands import STORE_SHIFT
from mxnet_hipress._errors import sentences
from mxnet_hipress._job_store import JobStore


class SavedStore(JobStore):
    """A store whose residuals and other states of compression can be saved.

    :param name: the type that scripts see, e.g. "dist_sync"
    """

    def _settle(self) -> None:
        """Block until all that was pushed and pulled is over."""
        raise NotImplementedError

    def save_compression_states(self, fname: str) -> None:
        """Save what compression remembers: residuals, momentum of codecs, counts of random ones.

        Every worker calls it, after the same step. Each writes `fname`.worker-RANK; worker 0's
        holds the servers' part, too. Nothing is written where there is nothing to save. Blocks.

        :raises MXNetError: if it cannot be written; what was there is there still
        """
        self._settle()
        with sentences():
            states.save(self._node, fname, *self._range())

    def load_compression_states(self, fname: str) -> None:
        """Load what save_compression_states saved in a job of the same shape, which this one then
        continues bit for bit. Every worker calls it, when all keys are initialized. Blocks.

        :raises MXNetError: for no file, one that is not whole, or another shape of job or keys;
            then this worker's states are as before
        """
        if not self._load_compression(fname):
            path = states.path_of(fname, self.rank)
            raise MXNetError(f"cannot read the compression states {path}: there is no such file")

    def resume_compression(self, fname: str) -> None:
        """Load what save_compression_states saved, if it is there and fits this job; a warning says
        so if not. Blocks."""
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
        """Return the numbers of this store's keys."""
        return self._number << STORE_SHIFT, (self._number + 1 << STORE_SHIFT) - 1
