"""Reporter: one instance on the dashboard, with its identity, windows, losses, and the delivery of
its windows.
"""

from __future__ import annotations

import encodings.idna  # noqa: F401 - a name lookup would import it, perhaps during a fork
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from compilewatch.config import Config
from compilewatch.errors import warn_user_nolock
from compilewatch.export.outbox import Outbox
from compilewatch.export.recently_acked import RecentlyAcked
from compilewatch.export.sender import Sender
from compilewatch.export.spool.recovery import SpoolRecovery
from compilewatch.export.spool.spool import Spool
from compilewatch.export.transport import create_transport
from compilewatch.identity.identity import identity_build, identity_refresh, instance_id
from compilewatch.identity.labels import LABEL
from compilewatch.identity.process_start import process_key, process_start_time
from compilewatch.identity.process_tree import LINEAGE
from compilewatch.identity.roles import capabilities_of, role_of
from compilewatch.lazy_modules import COMMANDS, REDACTION, require
from compilewatch.recording.cold_start import ColdStart
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.interpreters import FREE_THREADED, is_gil_enabled
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.sources.registry import InstalledSources
from compilewatch.wire.messages import Identity, Losses

if TYPE_CHECKING:
    from compilewatch.control.command_handler import CommandHandler

CLOCK_STEP_SECONDS = 0.1
"""Difference between the host's two clocks over one window, in seconds, that counts as a clock
step.

A time server's gradual correction stays below it.
"""


class Reporter:
    """The reporting state of this process.

    The holder of `turn` owns it: the agent's thread, except during its requests. `started` is the
    Unix time at which the first window began.
    """

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        sources: InstalledSources,
        started: float,
        turn: threading.Lock | None = None,
    ) -> None:
        self._transport = transport = create_transport(config, turn)
        self.outbox = Outbox()
        self.sender = Sender(
            transport,
            self.outbox,
            tail=RecentlyAcked(),
            say=warn_user_nolock,
            obey=self._handle_commands,
            renews=True,
        )
        self.identity: Identity = identity_build(config)
        facts = process_key()
        self._facts = (
            facts if facts == process_key() else None
        )  # a sandbox may return another boot id at each reading
        self._redaction = require(REDACTION) if config.redact else None
        self.spool = Spool(config, self.identity, say=warn_user_nolock)
        self.recovery = SpoolRecovery(config, transport)
        self._recorder = recorder
        self._causes = MissCauses.of(recorder)
        with FaultBarrier(recorder.record_internal_error):
            self._causes.open_history(config)
        self._sources = sources
        self._config = config
        self._commands: CommandHandler | None = None
        if config.allow_remote:
            self._load_commands()
        self._update_identity()
        self._seq = 0
        self._window_start = started
        self._opened_at = time.monotonic() - max(0.0, time.time() - started)
        self._cold_start = ColdStart(started)

    def poll(self) -> None:
        """Samples states that only exist at the moment. Call it about once per second."""
        self._cold_start.record_first_served(self._recorder)
        if self._commands is not None:
            self._commands.poll()

    def _handle_commands(self, commands: list[dict[str, Any]]) -> None:
        """Handles the commands of an acknowledgement.

        A job that allows no commands counts and reports them.
        """
        with FaultBarrier(self._recorder.record_internal_error):
            self._load_commands().handle(commands)

    def _load_commands(self) -> CommandHandler:
        if self._commands is None:
            commands_type: type[CommandHandler] = require(COMMANDS).CommandHandler
            self._commands = commands_type(self._config, self._recorder, lambda: self.identity)
        return self._commands

    def close_window(self) -> None:
        """Closes the open window, queues its report, and writes it to the spool."""
        self._update_identity()
        with FaultBarrier(self._recorder.record_internal_error):
            self._causes.explain_queued()
        start, end = self._window_ends()
        self._detect_copy()
        self._seq += 1
        report = self._recorder.rotate(self._seq, start, end)
        with FaultBarrier(self._recorder.record_internal_error):
            self.poll()
            self._cold_start.add_to_report(report)
        report.losses = Losses(
            merged_windows=self.outbox.merged_windows,
            truncated_events=self._recorder.truncated_event_count + self.outbox.truncated_events,
            spool_errors=self.spool.errors + self.recovery.errors,
            internal_errors=self._recorder.internal_error_count,
            rejected_windows=self.outbox.rejected_windows,
        )
        closed = self.outbox.add(
            report if self._redaction is None else self._redaction.redact_report(report)
        )
        self.spool.store(closed, self.outbox.pending)

    def _detect_copy(self) -> None:
        """Detects a process restored from a checkpoint by its changed pid, start or boot id: the
        original may still report.
        """
        facts = process_key()
        if facts is not None and self._facts is not None and facts != self._facts:
            self._facts = facts
            self.outbox.mark_copied()
            if self.outbox.renewable:
                self._renew()

    def _renew(self) -> None:
        """Continues under a new instance id with the queued windows, so that the dashboard
        separates the two processes.
        """
        earlier = self.spool
        self.identity.id, self.identity.pid, self.identity.started = (
            instance_id(),
            os.getpid(),
            process_start_time(),
        )
        self._seq = self.outbox.renumber()
        self.sender.reset_history()
        self.spool = Spool(self._config, self.identity, say=warn_user_nolock)
        self.spool.errors, self.spool.has_warned = earlier.errors, earlier.has_warned
        waiting = self.outbox.pending()
        if waiting:
            self.spool.store(waiting[-1], self.outbox.pending)
        earlier.close([])

    def _window_ends(self) -> tuple[float, float]:
        """Returns start and end of the window that ends now.

        The wall clock may be set during a window. It gives the end; the monotonic clock gives the
        length.
        """
        start, end = self._window_start, time.time()
        length = time.monotonic() - self._opened_at
        self._window_start, self._opened_at = end, self._opened_at + length
        return (
            start if abs(end - start - length) < CLOCK_STEP_SECONDS else max(0.0, end - length)
        ), end

    def send(self) -> bool:
        """Sends one batch; returns whether the server accepted it."""
        self.spool.prepare_send(self.outbox.pending(), self.outbox.merged_windows)
        answered = self.sender.attempt(self.identity)
        if self.outbox.renewable:
            self._renew()
        self.spool.update_pending(self.outbox.pending())
        return answered

    def send_recovered_windows(self) -> None:
        """Sends one batch of killed instances' windows, if no own window is queued and the
        dashboard answers.
        """
        if not len(self.outbox) and self._seq and not self.sender.failures:
            self.recovery.step()

    def interrupt(self) -> None:
        """Ends the request in progress, so that the agent's thread continues.

        Call it from another thread.
        """
        self._transport.interrupt()

    def finish(self) -> None:
        """Leaves unacknowledged windows on disk for a later process."""
        if self._commands is not None:
            self._commands.close()
        self.recovery.close()
        self.spool.close(self.outbox.pending())

    def _update_identity(self) -> None:
        """Updates the identity with facts that are known now."""
        with FaultBarrier(self._recorder.record_internal_error):
            serves = bool(self._recorder.buffers or self._recorder.compile_step)
            self.identity.role = role_of(serves)
            answers = capabilities_of(self.identity.role, serves, self._sources.capabilities())
            self.identity.capabilities = {**answers, "spool": self.spool.capability()}
            if not is_gil_enabled():
                self.identity.capabilities["calls"] = ("partly", FREE_THREADED)
            if self._commands is not None:
                self.identity.capabilities["switch"] = self._commands.capability()
                if self._config.allow_remote:
                    self.identity.capabilities["command_signatures"] = self._commands.signatures
            identity_refresh(self.identity)
            self.identity.label = LABEL.text(self._config.instance, os.environ)
            if self.identity.world_size == 1:
                self.identity.job = self.identity.job or LINEAGE.job(self.identity.host)
        if self._redaction is not None:
            self._redaction.identity_redact(self.identity)
