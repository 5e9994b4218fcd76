"""Loop around a user's training function, which it calls once in each view."""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Callable
from typing import Any

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.membership_errors import (
    ElasticError,
    Evicted,
    TrainingOver,
    ViewChanged,
)
from hipress.elastic.membership.view import View
from hipress.elastic.training.adapter import FrameworkAdapter
from hipress.elastic.training.hang_watch import LockWatch, Watch
from hipress.elastic.training.journal import Journal, describe, tell
from hipress.elastic.training.session import Session, ViewChange
from hipress.elastic.training.state import TrainingState
from hipress.elastic.training.undecided_step import CarriedState, UndecidedStep
from hipress.errors import CAME_LATE
from hipress.native.library import lib

_MAX_IDLE_VIEWS = 20
"""Number of consecutive views without a step after which training ends with the last error."""
_CHANGE_SECONDS = 2.0
"""Seconds in which a change of the workers explains an earlier error of any kind.

For an error of an operation with other workers, the heartbeat timeout is added, because silence
takes that long to detect.
"""
_log = logging.getLogger("hipress")


def run(train: Callable[..., Any], adapter: type[FrameworkAdapter]) -> Callable[..., Any]:
    """Make a training function continue when workers die, leave or join.

    Args:
        train: Function whose first argument is a :class:`.TrainingState`. It is called again in
            each view and continues from ``state.step``. Its other values must depend only on that,
            ``state.rank`` and ``state.size``.
        adapter: The framework's part.

    Returns:
        A function with the same arguments and result.

    Raises:
        hipress.elastic.ElasticError: if too few workers are left for too long, or this process has
            taken part in elastic training before
        SystemExit: if the job ends while this process waits to take part
    """

    @functools.wraps(train)
    def elastic(state: TrainingState, *args: Any, **kwargs: Any) -> Any:
        job = ElasticProcess(state, adapter)
        try:
            while True:
                try:
                    job.enter()
                    result = train(state, *args, **kwargs)
                    job.finish()
                    return result
                except Exception as error:
                    job.go_on_after(error)
                    forget_frames(error)
        finally:
            job.close()

    return elastic


def forget_frames(error: BaseException | None) -> None:
    """Remove the tracebacks of an error that has been handled.

    The native futures that failed with the error keep it forever, and its frames hold the view's
    process group and engine.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


_TRAINS = (
    "this process takes part in elastic training already, and it can do so once: one State with "
    "one optimizer, in MXNet one Trainer or store, has to hold all that is trained"
)
_HAS_ENDED = (
    "this process has ended its elastic training, and with it that of all workers: put all phases "
    "into one training function, which finds from state.step which one it is in"
)


class ElasticProcess:
    """This process in an elastic job. It takes part in one job only."""

    refusal = ""
    """Reason why this process cannot take part in another job.

    A slot has one agent per process. Its first view is that of all workers' first processes, and
    its end is the end of training.
    """

    def __init__(self, state: TrainingState, adapter: type[FrameworkAdapter]) -> None:
        if ElasticProcess.refusal:
            raise ElasticError(ElasticProcess.refusal)
        self._state, self._adapter, self._carried = state, adapter, CarriedState()
        if state.outer_steps is not None:
            state.outer_steps.begin()
        self._session: Session | None = None
        # Half of the time that other workers wait for the restarted one, if they need it.
        # If torchrun alone has started this process, its end would end all processes.
        alone = not os.environ.get("HIPRESS_ELASTIC_AGENTS")
        self._watch = Watch(state.timeout / 2, (lambda: self._agent.is_over) if alone else None)
        self._lock_watch = None if alone else LockWatch(state.timeout / 2)
        environ = adapter.environment(state.timeout)
        self._agent = Agent.from_environment(self._on_change, environ, self._on_status)
        ElasticProcess.refusal = _TRAINS
        self._last_view: View | None = None  # the last view that has begun
        self._norms: dict[str, float] = {}
        self._idle_views, self._completed = 0, state.completed
        try:
            self._journal = Journal(self._agent.slot)
            self._journal.write("start")
            self._view = self._await(self._agent.join, state.timeout)
        except BaseException:
            self._agent.close()
            ElasticProcess.refusal = ""
            raise

    def _await(self, entered: Callable[..., View], *args: Any) -> View:
        """Wait for a view.

        If training has ended, there is no further view. A process that never trained then exits
        without an error, because its model is not the trained one. A process that trained gets the
        error, because it may have something to save.
        """
        try:
            return entered(*args)
        except TrainingOver as error:
            if self._last_view is not None:
                raise
            tell(f"{error}: it also ends", logging.WARNING)
            # Only HiPress's launcher distinguishes a worker that comes too late from success. Other
            # launchers, such as a torchrun in between, get 0.
            ours = "HIPRESS_ELASTIC_JOB" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ
            raise SystemExit(CAME_LATE if ours else 0) from None

    def _on_status(self, status: dict[str, Any] | None) -> None:
        """Update dumps, which also work if Python hangs, and the lock watch.

        The agent's thread calls this several times per heartbeat timeout.
        """
        text = None if status is None else json.dumps(status).encode()
        lib.HipressSetDebugStatus(b"agent", text)  # the engine reports errors in its settings
        if self._lock_watch is not None:
            self._lock_watch.end() if status is None else self._lock_watch.renew()

    def _on_change(self, _view: View) -> None:
        if why := self._agent.expelled:
            self._watch.begin(why)
        session = self._session
        why = "" if session is None else self._agent.ended(session.view.epoch)
        if why:
            session.interrupt(why)

    def enter(self) -> None:
        """Enter the newest view."""
        state, view = self._state, self._view
        self._session = session = Session(
            state, self._adapter, self._agent, view, self._carried, self._journal
        )
        session.open()
        state.session = session
        if session.rank == 0:
            tell(describe(view, self._last_view, state.step, self._norms))
        else:
            _log.info("view %d: this is rank %d of %d", view.epoch, session.rank, session.size)
        self._last_view, self._norms = view, {}
        self._journal.write(
            "view", epoch=view.epoch, step=state.step, size=session.size, rank=session.rank
        )
        for callback in state.reset_callbacks:
            callback()

    def finish(self) -> None:
        """Wait for the end of training on all members, and leave the job."""
        self._session.await_end()
        self.leave()

    def leave(self) -> None:
        """Leave the job on purpose. Other workers repeat an unfinished step without this one."""
        self._leave_view()
        self._agent.leave()
        ElasticProcess.refusal = _HAS_ENDED

    def go_on_after(self, error: Exception) -> None:
        """Prepare for the next view if ``error`` means that this one ended, otherwise raise it."""
        self._watch.end()
        session, agent, state = self._session, self._agent, self._state
        if session.trains_alone and not isinstance(error, Evicted):
            raise error  # no other worker is involved
        if isinstance(error, ElasticError) and not isinstance(error, (Evicted, ViewChanged)):
            raise error
        epoch = session.view.epoch
        if isinstance(error, session.adapter.errors) and not isinstance(error, ElasticError):
            agent.request_change(str(error), epoch)
        elif not isinstance(error, (ViewChange, Evicted, ViewChanged)):
            self._await_change(epoch, error)
        if state.completed > self._completed:
            self._idle_views, self._completed = 0, state.completed
        self._idle_views += 1
        if self._idle_views > _MAX_IDLE_VIEWS:
            raise error
        self._leave_view()
        try:
            if isinstance(error, Evicted):
                raise error
            self._view = self._await(agent.await_view, epoch, state.timeout)
        except Evicted as reason:
            self._rejoin(reason)
            return
        self._norms.update(session.norms)
        self._take_over(session, complete=isinstance(error, ViewChange))

    def _await_change(self, epoch: int, error: Exception) -> None:
        """Return if the workers change soon, because ``error`` may then be a consequence."""
        if not isinstance(error, (RuntimeError, OSError)):
            raise error
        seconds = _CHANGE_SECONDS
        if self._session.adapter.involves_other_workers(error):
            seconds += 1.25 * self._agent.heartbeat_timeout
        try:
            self._agent.await_view(epoch, seconds)
        except Evicted:
            return
        except ElasticError:
            raise error from None

    def _take_over(self, session: Session, complete: bool) -> None:
        """Keep the compression's state. If its last step has failed, it is undecided.

        With ``complete``, all members have completed the last step.
        """
        state, view = self._state, self._view
        carried, compression = self._carried, session.compression
        if compression is None:
            # A view without a step passes on the undecided step of the previous one.
            if carried.undecided is None:
                return
        elif state.applied:
            # All members have this step's result, or will copy it.
            state.step, state.applied = state.step + 1, False
            carried.take_from(compression)
        elif complete:
            carried.take_from(compression)
        else:  # another worker may have the result, or soon get it, with this worker's part
            carried.undecided = UndecidedStep(compression, state.completed)
        for member, reason in view.departed:
            _log.info("view %d is without slot %d: %s", view.epoch, member.slot, reason)
            gone = {"gone": member.slot, "residual_written_off": self._norms.get(member.id)}
            self._journal.write("gone", epoch=view.epoch, **gone)

    def _rejoin(self, reason: Evicted) -> None:
        """Join as a new member without a residual, after the job continued without it."""
        self._watch.end()
        _log.warning("%s; it joins again", reason)
        self._carried = CarriedState()
        self._state.is_part = False
        if self._state.outer_steps is not None:  # other workers continued without the inner steps
            self._state.outer_steps.reset_weights()
        self._view = self._await(self._agent.join, self._state.timeout)
        self._watch.end()  # it may have begun since this process joined again

    def _leave_view(self) -> None:
        self._state.session = None
        if self._session is not None:
            self._session.close()

    def close(self) -> None:
        """Close the session, the agent and the journal of this process."""
        try:
            self._leave_view()
        finally:
            self._agent.close()
        if ElasticProcess.refusal == _TRAINS:
            ElasticProcess.refusal = ""
        self._watch.end()
        self._journal.write("end", step=self._state.step)
