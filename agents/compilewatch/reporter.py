"""One instance, as the dashboard knows it: its identity, its windows in a row, its loss account, and what carries them there."""

from __future__ import annotations

import encodings.idna  # noqa: F401 - looking up a name imports it, and by then a fork may come in between
import os
import threading
import time
from typing import TYPE_CHECKING, Any

from compilewatch.config import Config
from compilewatch.errors import say_aside
from compilewatch.export.outbox import Outbox
from compilewatch.export.recently_acked import Tail
from compilewatch.export.sender import Sender
from compilewatch.export.spool.recovery import Leftovers
from compilewatch.export.spool.spool import Spool
from compilewatch.export.transport import transport_of
from compilewatch.identity.identity import identity_build, identity_refresh, instance_id
from compilewatch.identity.labels import LABEL
from compilewatch.identity.process_start import process_facts, process_started
from compilewatch.identity.process_tree import LINEAGE
from compilewatch.identity.roles import capabilities_of, role_of
from compilewatch.lazy_modules import COMMANDS, REDACTION, require
from compilewatch.recording.cold_start import ColdStart
from compilewatch.recording.recorder import Recorder
from compilewatch.runtime.fault_barrier import FaultBarrier
from compilewatch.runtime.interpreters import FREE_THREADED, one_thread_at_a_time
from compilewatch.sources.inductor.cache_miss_reasons import MissCauses
from compilewatch.sources.registry import InstalledSources
from compilewatch.wire.messages import Identity, Losses

if TYPE_CHECKING:
    from compilewatch.control.command_handler import Commands

CLOCK_WAS_SET = 0.1
"""Seconds by which the two clocks of a host must differ over one window: less is the pace at which a time server mends one of them."""


class Instance:
    """Belongs to who has the `turn`, which is the agent's thread while none of its requests is under way; `started` is the Unix time at
    which its first window began."""

    def __init__(
        self,
        config: Config,
        recorder: Recorder,
        sources: InstalledSources,
        started: float,
        turn: threading.Lock | None = None,
    ) -> None:
        self._transport = transport = transport_of(config, turn)
        self.outbox = Outbox()
        self.sender = Sender(
            transport, self.outbox, tail=Tail(), say=say_aside, obey=self._obey, renews=True
        )
        self.identity: Identity = identity_build(config)
        facts = process_facts()
        self._facts = (
            facts if facts == process_facts() else None
        )  # a sandbox may make up another boot id at each reading
        self._redaction = require(REDACTION) if config.redact else None
        self.spool = Spool(config, self.identity, say=say_aside)
        self.leftovers = Leftovers(config, transport)
        self._recorder = recorder
        self._causes = MissCauses.of(recorder)
        with FaultBarrier(recorder.internal_error):
            self._causes.keep_in(config)
        self._sources = sources
        self._config = config
        self._commands: Commands | None = None
        if config.allow_remote:
            self._commands_load()
        self._describe()
        self._seq = 0
        self._window_start = started
        self._opened = time.monotonic() - max(0.0, time.time() - started)
        self._cold_start = ColdStart(started)

    def look(self) -> None:
        """Looks, about once a second, for what only the present moment shows."""
        self._cold_start.look(self._recorder)
        if self._commands is not None:
            self._commands.look()

    def _obey(self, commands: list[dict[str, Any]]) -> None:
        """What came with an acknowledgement. Of a job that allows nothing it is counted and told, no more."""
        with FaultBarrier(self._recorder.internal_error):
            self._commands_load().take(commands)

    def _commands_load(self) -> Commands:
        if self._commands is None:
            found: type[Commands] = require(COMMANDS).Commands
            self._commands = found(self._config, self._recorder, lambda: self.identity)
        return self._commands

    def close_window(self) -> None:
        """Ends the open window now and puts its report in line, and on disk."""
        self._describe()
        with FaultBarrier(self._recorder.internal_error):
            self._causes.tell()
        start, end = self._window_ends()
        self._look_for_copies()
        self._seq += 1
        report = self._recorder.close(self._seq, start, end)
        with FaultBarrier(self._recorder.internal_error):
            self.look()
            self._cold_start.complete(report)
        report.losses = Losses(
            merged_windows=self.outbox.merged_windows,
            truncated_events=self._recorder.truncated_events + self.outbox.truncated_events,
            spool_errors=self.spool.errors + self.leftovers.errors,
            internal_errors=self._recorder.internal_errors,
            rejected_windows=self.outbox.rejected_windows,
        )
        closed = self.outbox.add(
            report if self._redaction is None else self._redaction.report_redacted(report)
        )
        self.spool.keep(closed, self.outbox.waiting)

    def _look_for_copies(self) -> None:
        """A process that was restored from a checkpoint shows another pid, start or boot than it had: the original may report too."""
        facts = process_facts()
        if facts is not None and self._facts is not None and facts != self._facts:
            self._facts = facts
            self.outbox.copied()
            if self.outbox.renewable:
                self._renew()

    def _renew(self) -> None:
        """Goes on as another instance, with what waits; the dashboard keeps it apart from the process that has the earlier id."""
        earlier = self.spool
        self.identity.id, self.identity.pid, self.identity.started = (
            instance_id(),
            os.getpid(),
            process_started(),
        )
        self._seq = self.outbox.renumber()
        self.sender.begin_again()
        self.spool = Spool(self._config, self.identity, say=say_aside)
        self.spool.errors, self.spool.said = earlier.errors, earlier.said
        waiting = self.outbox.waiting()
        if waiting:
            self.spool.keep(waiting[-1], self.outbox.waiting)
        earlier.close([])

    def _window_ends(self) -> tuple[float, float]:
        """Start and end of the window that ends now. The host's clock may be set in mid-window: it says when the window ended, and the
        other clock how long it was."""
        start, end = self._window_start, time.time()
        length = time.monotonic() - self._opened
        self._window_start, self._opened = end, self._opened + length
        return (start if abs(end - start - length) < CLOCK_WAS_SET else max(0.0, end - length)), end

    def send(self) -> bool:
        """One batch; True if the server answered for it."""
        self.spool.ahead_of_sending(self.outbox.waiting(), self.outbox.merged_windows)
        answered = self.sender.attempt(self.identity)
        if self.outbox.renewable:
            self._renew()
        self.spool.settled(self.outbox.waiting())
        return answered

    def send_leftovers(self) -> None:
        """One batch of what killed instances left on disk, while nothing of this one waits and the dashboard answers."""
        if not len(self.outbox) and self._seq and not self.sender.failures:
            self.leftovers.step()

    def interrupt(self) -> None:
        """Called by another thread: ends the request that is under way, so that this one's thread goes on."""
        self._transport.interrupt()

    def finish(self) -> None:
        """Leaves on disk what was not acknowledged, for a later process."""
        if self._commands is not None:
            self._commands.close()
        self.leftovers.close()
        self.spool.close(self.outbox.waiting())

    def _describe(self) -> None:
        """Adds to the identity what has become known since."""
        with FaultBarrier(self._recorder.internal_error):
            serves = bool(self._recorder.lines or self._recorder.epoch)
            self.identity.role = role_of(serves)
            answers = capabilities_of(self.identity.role, serves, self._sources.capabilities())
            self.identity.capabilities = {**answers, "spool": self.spool.capability()}
            if not one_thread_at_a_time():
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
