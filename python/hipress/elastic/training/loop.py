"""The loop around a user's training function: a view after another."""

from __future__ import annotations

import functools
import json
import logging
import os
from collections.abc import Callable
from typing import Any

from hipress.elastic.membership.agent import Agent
from hipress.elastic.membership.errors import ElasticError, Evicted, TrainingOver, ViewChanged
from hipress.elastic.membership.view import View
from hipress.elastic.training import news
from hipress.elastic.training.journal import Journal
from hipress.elastic.training.session import Session, ViewChange
from hipress.elastic.training.state import State
from hipress.elastic.training.stuck import LockWatch, Watch
from hipress.errors import CAME_LATE
from hipress.native.library import lib

_MAX_IDLE_VIEWS = 20
"""Views in a row without a step, or round, after which training ends with the last one's error."""
_CHANGE_SECONDS = 2.0
"""Time in which a change of the workers shows that an error of any kind was its consequence; one of
an operation with others may come as long before as silence takes to be noticed."""
_log = logging.getLogger("hipress")


def run(train: Callable[..., Any], session: type[Session]) -> Callable[..., Any]:
    """Makes a training function go on when workers die, leave or join.

    :param train: takes a :class:`State` first. It is called anew in each view, and goes on from
        ``state.step``: what it has of its own is to depend on that, ``state.rank`` and
        ``state.size``
    :param session: of the framework's
    :returns: a function with the same arguments and result
    :raises hipress.elastic.ElasticError: if too few workers are left, for too long, or this process
        has taken part in such training before
    :raises SystemExit: if the others end while this process waits to take part
    """

    @functools.wraps(train)
    def elastic(state: State, *args: Any, **kwargs: Any) -> Any:
        job = Job(state, session)
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
    """Takes the tracebacks off an error that is dealt with. The native futures that failed with it
    have it for ever, and their frames hold the view's process group and engine."""
    while error is not None:
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _show_status(status: dict[str, Any] | None) -> None:
    """Leaves what the agent knows with the library, whose dumps are to tell it even if Python is
    stuck."""
    text = None if status is None else json.dumps(status).encode()
    lib.HipressSetDebugStatus(b"agent", text)  # the engine says what is wrong with its settings


_OPEN, _OVER = "open", "over"
_of_process: str | None = None
"""The job of this process: a slot has one agent, whose first view is that of all workers' first
processes, and whose end is the end of training."""


def _refuse_another() -> None:
    if _of_process == _OPEN:
        raise ElasticError(
            "this process takes part in elastic training already, and it can do so once: one State "
            "with one optimizer, in MXNet one Trainer or store, has to hold all that is trained"
        )
    if _of_process == _OVER:
        raise ElasticError(
            "this process has ended its elastic training, and with it that of all workers: put all "
            "phases into one training function, which finds from state.step which one it is in"
        )


def _note(job: str | None) -> None:
    global _of_process
    _of_process = job


def _status_of_late() -> int:
    """Status of a worker that comes too late. To others than our launcher it has just ended well;
    so it has to a torchrun in between."""
    ours = "HIPRESS_ELASTIC_JOB" in os.environ and "TORCHELASTIC_RUN_ID" not in os.environ
    return CAME_LATE if ours else 0


class Job:
    """This process in an elastic job."""

    def __init__(self, state: State, session: type[Session]) -> None:
        _refuse_another()
        self._state, self._type, self._carried = state, session, session.Carried()
        state.begin()
        self._session: Session | None = None
        # Half of the time that others wait for the one that is started again, if they need it.
        # Where torchrun alone has started this process, its end would be that of all.
        alone = not os.environ.get("HIPRESS_ELASTIC_AGENTS")
        self._watch = Watch(state.timeout / 2, self._is_over if alone else None)
        self._lock_watch = None if alone else LockWatch(state.timeout / 2)
        environ = session.environment(state.timeout)
        self._agent = Agent.from_environment(self._on_change, environ, self._on_status)
        _note(_OPEN)
        self._last_view: View | None = None  # that has begun
        self._norms: dict[str, float] = {}
        self._idle_views, self._completed = 0, state.completed
        try:
            self._journal = Journal(self._agent.slot)
            self._journal.write("start")
            self._view = self._await(self._agent.join, state.timeout)
        except BaseException:
            self._agent.close()
            _note(None)
            raise

    def _await(self, entered: Callable[..., View], *args: Any) -> View:
        """Waits for a view. If there will be none, as the others have come to the end of training,
        a process that never trained with them ends well: its model is not the trained one. One
        that did has something to be told of, or to save."""
        try:
            return entered(*args)
        except TrainingOver as error:
            if self._last_view is not None:
                raise
            news.tell(f"{error}: it ends, too", logging.WARNING)
            raise SystemExit(_status_of_late()) from None

    def _is_over(self) -> bool:
        return self._agent.is_over

    def _on_status(self, status: dict[str, Any] | None) -> None:
        """Several times in a heartbeat timeout, in the agent's thread."""
        _show_status(status)
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
        """Begins the newest view."""
        state, view = self._state, self._view
        self._session = session = self._type(state, self._agent, view, self._carried, self._journal)
        session.open()
        state.session = session
        if session.rank == 0:
            news.tell(news.describe(view, self._last_view, state.step, self._norms))
        else:
            _log.info("view %d: this is rank %d of %d", view.epoch, session.rank, session.size)
        self._last_view, self._norms = view, {}
        self._journal.write(
            "view", epoch=view.epoch, step=state.step, size=session.size, rank=session.rank
        )
        state.call_back()

    def finish(self) -> None:
        """Ends the job in peace, together with the others."""
        self._session.await_end()
        self.leave()

    def leave(self) -> None:
        """Leaves the job in peace; what the others do with this worker they do again without."""
        self._leave_view()
        self._agent.leave()
        _note(_OVER)

    def go_on_after(self, error: Exception) -> None:
        """Prepares for the next view, if ``error`` shows that this one is over; else raises it."""
        self._watch.end()
        session, agent, state = self._session, self._agent, self._state
        if session.trains_alone and not isinstance(error, Evicted):
            raise error  # no other worker has to do with it
        if isinstance(error, ElasticError) and not isinstance(error, (Evicted, ViewChanged)):
            raise error
        epoch = session.view.epoch
        if isinstance(error, session.errors) and not isinstance(error, ElasticError):
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
        """Returns if the workers change soon, so that ``error`` may be its consequence."""
        if not isinstance(error, (RuntimeError, OSError)):
            raise error
        seconds = _CHANGE_SECONDS
        if self._session.is_of_others(error):
            seconds += 1.25 * self._agent.heartbeat_timeout
        try:
            self._agent.await_view(epoch, seconds)
        except Evicted:
            return
        except ElasticError:
            raise error from None

    def _take_over(self, session: Session, complete: bool) -> None:
        """Decides about the step that was under way, and keeps what error feedback remembers."""
        state, view = self._state, self._view
        carried = self._carried
        # A view that came to no step leaves what the one before has left.
        compression = session.compression or carried.undecided
        if compression is None:
            return
        if state.applied:
            # All have this step's result; whoever is not behind goes on from it.
            state.step, state.applied = state.step + 1, False
            carried.take_from(compression)
        elif complete:
            carried.take_from(compression)
        else:  # somebody may have the result, or be about to, with this worker's part in it
            carried.undecided = compression
        for member, reason in view.departed:
            _log.info("view %d is without slot %d: %s", view.epoch, member.slot, reason)
            gone = {"gone": member.slot, "residual_written_off": self._norms.get(member.id)}
            self._journal.write("gone", epoch=view.epoch, **gone)

    def _rejoin(self, reason: Evicted) -> None:
        """Joins as a new member, without a residual: the others have gone on without this one."""
        self._watch.end()
        _log.warning("%s; it joins again", reason)
        self._carried = self._type.Carried()
        self._state.is_part = False
        self._state.rejoin()
        self._view = self._await(self._agent.join, self._state.timeout)
        self._watch.end()  # it may have begun since this process came back

    def _leave_view(self) -> None:
        self._state.session = None
        if self._session is not None:
            self._session.close()

    def close(self) -> None:
        """Ends this process's part."""
        try:
            self._leave_view()
        finally:
            self._agent.close()
        if _of_process == _OPEN:
            _note(None)
        self._watch.end()
        self._journal.write("end", step=self._state.step)
