"""Agent lifecycle: starts and stops sources, recorder and the background thread of this process."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config, load
from compilewatch.errors import ConfigError, warn_user
from compilewatch.identity.labels import LABEL
from compilewatch.identity.process_tree import LINEAGE
from compilewatch.instrument import hotpath
from compilewatch.instrument.kill_switch import KILL_SWITCH
from compilewatch.recording.recorder import RECORDER, Recorder
from compilewatch.recording.region_spec import safe_text
from compilewatch.runtime import server_exit
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.interpreters import (
    FREE_THREADED,
    is_gil_enabled,
    is_main_interpreter,
)
from compilewatch.runtime.process_exit import ending_at_exit, ending_of_child, preserve_interrupt
from compilewatch.runtime.sigterm import SigtermHandler
from compilewatch.sources.registry import InstalledSources
from compilewatch.wire.clip import clip_data
from compilewatch.worker import Worker

EXIT_SECONDS = 1.0
SUBINTERPRETER = (
    "off: this is a subinterpreter, which cannot end while an agent thread sends; start the "
    "agent in the main interpreter (mod_wsgi: WSGIApplicationGroup %{GLOBAL})"
)


class Agent:
    """The agent; one per process.

    A forked child inherits it and starts its own reporter at its first watched call.
    """

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.sources = InstalledSources(recorder)
        self.worker: Worker | None = None
        self.termination = SigtermHandler(self._end, recorder.record_internal_error)
        self._start_lock = threading.Lock()
        self._hooked = False

    def start(self, config: Config) -> None:
        """Starts recording and the background thread."""
        self.stop()
        self._hook_process()
        self.recorder.config, KILL_SWITCH.is_allowed = config, bool(config.allow_remote)
        self.recorder.wake = self.start_reporter
        self.recorder.start()
        self.sources.install(late=True)
        self.sources.when_imported("trio", self.termination.stop_listening)
        self.start_reporter()

    def is_running_with(self, config: Config) -> bool:
        """Returns whether the agent runs with these settings.

        A notebook cell that runs again then starts no second reporter.
        """
        return (
            self.worker is not None
            and self.recorder.buffers is not None
            and self.recorder.config == config
        )

    def start_reporter(self) -> None:
        """Starts the reporter unless it runs.

        In a forked child, the first watched call starts the new one here.
        """
        if (
            self.worker is not None
            or self.recorder.config is None
            or not self._start_lock.acquire(blocking=False)
        ):
            return
        try:
            if self.worker is None:
                worker = Worker(
                    self.recorder.config, self.recorder, self.sources, self.termination.poll
                )
                worker.start()
                self.worker = worker
                LINEAGE.on_child_start()
                with FaultBarrier(RECORDER.record_internal_error):
                    LABEL.refresh()  # now, because the framework's frames are on the stack
                self._hook_ending()
        finally:
            self._start_lock.release()

    def stop(self) -> None:
        """Closes the window and sends the queued windows within one second, so that the job's exit
        is not delayed longer.
        """
        worker, self.recorder.config = self.worker, None
        if worker is not None:
            worker.stop(EXIT_SECONDS)
        self.recorder.stop()
        self.sources.uninstall()
        self.worker = None
        self.termination.uninstall()

    def _end(self, ending: dict[str, Any]) -> None:
        """Records the ending of the process in the last window and sends it."""
        if self.worker is not None and self.recorder.buffers is not None:
            self.recorder.record_fact("ended", ending)
        if self.worker is not None:
            self.worker.stop(EXIT_SECONDS)

    def _end_and_stop(self, ending: Callable[[], dict[str, Any]]) -> None:
        with FaultBarrier(RECORDER.record_internal_error):
            self._end(ending())
        with FaultBarrier(RECORDER.record_internal_error):
            self.stop()

    def _end_at_exit(self) -> None:
        self._end_and_stop(ending_at_exit)
        preserve_interrupt()

    def _hook_process(self) -> None:
        if self._hooked:
            return
        self._hooked = True
        atexit.register(self._end_at_exit)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before_fork, after_in_child=self._after_fork)

    def _hook_ending(self) -> None:
        """Hooks the endings that atexit misses: signals, `multiprocessing` children, and server
        workers.
        """
        with FaultBarrier(RECORDER.record_internal_error):
            worker = self.worker
            self.termination.install(lambda: None if worker is None else worker.thread)
        with FaultBarrier(RECORDER.record_internal_error):
            _finalize_in_child(self, Agent._end_of_child)
        with FaultBarrier(RECORDER.record_internal_error):
            server_exit.listen(lambda ending: self._end_and_stop(lambda: ending))

    def _end_of_child(self) -> None:
        self._end_and_stop(ending_of_child)

    def _before_fork(self) -> None:
        if self.worker is not None:
            self.worker.wait_until_loaded()
            with FaultBarrier(RECORDER.record_internal_error):
                LINEAGE.before_fork()

    def _after_fork(self) -> None:
        """Resets the state by assignments only: a lock that another thread held at the fork stays
        locked in the child.
        """
        if self.worker is not None:
            self.worker.abandon()
        self.worker = None
        self._start_lock = threading.Lock()
        self.termination.after_fork()
        LINEAGE.after_fork()
        self.sources.after_fork()
        self.recorder.reset_after_fork()
        hotpath.own_thread = hotpath.NO_THREAD  # its thread may not exist in the child


def _finalize_in_child(client: Agent, end: Callable[[Agent], None]) -> None:
    """Registers the ending of a `multiprocessing` child, which skips atexit but runs its own
    finalizers.

    A child that imports the main module again drops finalizers registered before its work began, so
    they are registered after the fork.
    """
    for package in ("multiprocessing", "billiard"):
        util, process = sys.modules.get(f"{package}.util"), sys.modules.get(f"{package}.process")
        if util is None or process is None:
            continue
        if process.current_process()._parent_pid is not None:
            _finalize(util, end, client)
        elif getattr(process.current_process(), "_inheriting", False):
            util.register_after_fork(client, functools.partial(_finalize, util, end))


def _finalize(util: Any, end: Callable[[Agent], None], client: Agent) -> None:
    util.Finalize(None, end, args=(client,), exitpriority=10)


AGENT = Agent(RECORDER)


def init(model: str | None = None, version: str | None = None, **settings: Any) -> bool:
    """Starts the agent and returns whether it runs with these settings.

    Settings that are not passed come from COMPILEWATCH_* variables. A missing or wrong setting
    prints one line on stderr, and the agent stays as it was: off, or on with its earlier settings.
    A second call with equal settings changes nothing. Never raises.
    """
    try:
        if not is_main_interpreter():
            raise ConfigError(SUBINTERPRETER)
        config = load({"model": model, "version": version, **settings})
        if AGENT.is_running_with(config):
            return True
        RECORDER.is_disabled, RECORDER.specs.check_nan = False, config.finite
        AGENT.start(config)
        if not is_gil_enabled():
            warn_user(FREE_THREADED)
    except ConfigError as error:
        RECORDER.is_disabled = RECORDER.buffers is None
        warn_user(
            str(error)
            if RECORDER.buffers is None
            else (
                f"{str(error).removeprefix('off: ')}; the agent continues with its earlier settings"
            )
        )
        return False
    except Exception as error:  # noqa: BLE001 - the job starts in any case
        RECORDER.stop()
        with FaultBarrier(RECORDER.record_internal_error):
            AGENT.stop()  # undo the bindings to torch made before the error
        warn_user(f"off: the agent failed to start ({type(error).__name__}: {error})")
        return False
    return True


def shutdown() -> None:
    """Sends the queued windows within one second and stops the agent.

    Runs automatically at exit.
    """
    with FaultBarrier(RECORDER.record_internal_error):
        AGENT.stop()


def ready() -> None:
    """Declares the end of warm-up: from now on, a compilation inside a watched call counts as a
    stall of a request.
    """
    if hotpath.is_tracing():
        return
    with FaultBarrier(RECORDER.record_internal_error):
        if RECORDER.buffers is not None and RECORDER.ready_at is None:
            RECORDER.mark_ready()


def mark(name: str, /, **data: Any) -> None:
    """Adds a mark to the timeline, for example when new weights are loaded."""
    if hotpath.is_tracing():
        return
    with FaultBarrier(RECORDER.record_internal_error):
        if RECORDER.buffers is not None:
            RECORDER.record_fact("mark", {**clip_data(data), "name": safe_text(name)})
