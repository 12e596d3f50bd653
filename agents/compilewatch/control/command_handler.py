"""Command handler: checks each command in an acknowledgement, applies it if the job allows it, and
sends receipts.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config
from compilewatch.control.signatures import opener_of, signature_capability
from compilewatch.instrument.kill_switch import KILL_SWITCH, HeldCommand
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.eager_stance import find_eager_request
from compilewatch.wire.command import (
    MAX_COMMANDS,
    MAX_LIFETIME_SECONDS,
    RESTORE,
    Command,
    CommandRefused,
)
from compilewatch.wire.messages import Identity

MAX_CLOCK_SKEW_SECONDS = 60.0
"""Maximum clock skew in seconds between this host and the dashboard before a command counts as too
long.
"""
MAX_REFUSAL_RECEIPTS = 64
"""Number of refused commands that get a receipt; further ones are only counted."""


class CommandHandler:
    """Only the agent's thread uses it."""

    def __init__(
        self, config: Config, recorder: Recorder, identity: Callable[[], Identity]
    ) -> None:
        self._allowed = config.allow_remote
        self._open = opener_of(config)
        self.signatures = signature_capability(config)
        """The capability of signature verification."""
        self._recorder = recorder
        self._identity = identity
        self._last: Command | None = None
        self._applied: Command | None = None
        self._refused_digests: set[str] = set()
        self.refused: dict[str, int] = {}
        """Number of refused commands, by reason."""

    def capability(self) -> tuple[str, str]:
        """Returns the commands that this job allows."""
        return (
            ("yes", ", ".join(self._allowed))
            if self._allowed
            else ("no", "not allowed by this job")
        )

    def handle(self, given: list[Any]) -> None:
        """Applies the commands of an acknowledgement.

        The dashboard repeats a command in every answer while the command is live; a known command
        is ignored.
        """
        for item in given[:MAX_COMMANDS]:
            try:
                self._apply(self._open(item))
            except CommandRefused as refused:
                self._refuse(refused, item)
        for item in given[MAX_COMMANDS:]:
            self._refuse(CommandRefused("too_many"), item)
        self.poll()

    def poll(self) -> None:
        """Reports commands that took effect and ends those that expired.

        Call it about once per second.
        """
        active = KILL_SWITCH.command
        if active is not None and time.monotonic() >= active.end:
            self._end("expired")
        elif (
            active is not None
            and self._applied is None
            and active.is_in_force()
            and self._last is not None
        ):
            self._applied = self._last
            self._recorder.set_process_eager(*find_eager_request())
            self._receipt("applied", self._last, callables=KILL_SWITCH.route_count)

    def close(self) -> None:
        """Ends the active command when the agent stops, so that its effect does not outlive the
        agent.
        """
        if KILL_SWITCH.command is not None:
            self._end("agent stopped")

    def _apply(self, command: Command) -> None:
        last = self._last
        if last is not None and (command.counter, command.id) == (last.counter, last.id):
            return
        self._check(command)
        self._last = command
        if command.ask:
            self._receipt("ready", command, callables=KILL_SWITCH.route_count)
        elif command.verb == RESTORE:
            self._restore(command)
        else:
            self._hold(command)

    def _check(self, command: Command) -> None:
        identity, now = self._identity(), time.time()
        if self._last is not None and command.counter <= self._last.counter:
            raise CommandRefused("replayed", command=command)
        if (command.model, command.version, command.environment) != (
            identity.model,
            identity.version,
            identity.environment,
        ):
            raise CommandRefused("wrong_target", command=command)
        if not command.includes(identity.id, identity.job):
            raise CommandRefused("wrong_target", "instance", command)
        if command.verb not in (*self._allowed, RESTORE):
            raise CommandRefused("not_allowed", command=command)
        if command.expires <= now:
            raise CommandRefused("expired", command=command)
        if command.expires - now > MAX_LIFETIME_SECONDS + MAX_CLOCK_SKEW_SECONDS:
            raise CommandRefused("too_long", command=command)
        if not KILL_SWITCH.route_count:
            raise CommandRefused("nothing_to_switch", command=command)

    def _hold(self, command: Command) -> None:
        """Schedules the command.

        If a command with the same verb is in force, its end moves and there is no gap.
        """
        now, active = time.monotonic(), KILL_SWITCH.command
        begin = now + max(0.0, command.not_before - time.time())
        end = now + min(command.expires - time.time(), MAX_LIFETIME_SECONDS)
        if active is not None and active.verb == command.verb and active.is_in_force():
            active.end = end
            self._applied = self._applied and command
            self._receipt("accepted", command)
            return
        if active is not None:
            self._end("replaced by another command")
        self._recorder.has_command = True
        KILL_SWITCH.command = HeldCommand(command.verb, begin, end)
        self._recorder.sampler.stop()
        self._receipt("accepted", command)

    def _restore(self, command: Command) -> None:
        """Ends the active command at the scheduled time, so that all ranks return together."""
        active = KILL_SWITCH.command
        self._receipt("accepted", command)
        if active is not None:
            active.end = min(
                active.end, time.monotonic() + max(0.0, command.not_before - time.time())
            )

    def _end(self, why: str) -> None:
        applied, self._applied, KILL_SWITCH.command = self._applied, None, None
        self._recorder.has_command = False
        self._recorder.set_process_eager(*find_eager_request())
        if applied is not None:
            self._receipt("ended", applied, why=why)

    def _refuse(self, refused: CommandRefused, item: Any) -> None:
        """Counts every refusal, and sends one receipt per command up to a limit."""
        self.refused[refused.code] = self.refused.get(refused.code, 0) + 1
        digest = hashlib.sha256(repr(item).encode("utf-8", "replace")).hexdigest()
        if digest in self._refused_digests or len(self._refused_digests) >= MAX_REFUSAL_RECEIPTS:
            return
        self._refused_digests.add(digest)
        self._receipt("refused", refused.command, why=refused.code, detail=refused.detail)

    def _receipt(self, state: str, command: Command | None, **extra: Any) -> None:
        head = (
            {"command": command.id, "verb": command.verb, "counter": command.counter}
            if command is not None
            else {}
        )
        details = {key: value for key, value in extra.items() if value != ""}
        self._recorder.record_fact(
            "command_receipt",
            {**head, "state": state, **details, "refused": sum(self.refused.values())},
        )
