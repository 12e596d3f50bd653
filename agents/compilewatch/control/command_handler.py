"""What becomes of the commands in an answer: checked one by one, followed if the job allows it, and told in receipts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

from compilewatch.config import Config
from compilewatch.control.signatures import opener_of, signature_capability
from compilewatch.instrument.kill_switch import SWITCH, Held
from compilewatch.recording.recorder import Recorder
from compilewatch.sources.dynamo.eager_stance import eager_by_request
from compilewatch.wire.command import MAX_COMMANDS, MAX_LIFETIME, RESTORE, Command, CommandRefused
from compilewatch.wire.messages import Identity

CLOCKS_DIFFER = 60.0
"""Seconds by which this host's clock may be behind the dashboard's before a command looks too long."""
MAX_TOLD = 64
"""Refused commands that are told one by one; of further ones only the number grows."""


class Commands:
    """Belongs to the agent's thread."""

    def __init__(
        self, config: Config, recorder: Recorder, identity: Callable[[], Identity]
    ) -> None:
        self._allowed = config.allow_remote
        self._open = opener_of(config)
        self.signatures = signature_capability(config)
        """What it verifies them by."""
        self._recorder = recorder
        self._identity = identity
        self._last: Command | None = None
        self._begun: Command | None = None
        self._told: set[str] = set()
        self.refused: dict[str, int] = {}
        """How many were not followed, by reason."""

    def capability(self) -> tuple[str, str]:
        """What the dashboard may ask for."""
        return (
            ("yes", ", ".join(self._allowed))
            if self._allowed
            else ("no", "not allowed by this job")
        )

    def take(self, given: list[Any]) -> None:
        """Follows what came with an acknowledgement. A command stands in every answer while it is live: a known one is no news."""
        for one in given[:MAX_COMMANDS]:
            try:
                self._follow(self._open(one))
            except CommandRefused as refused:
                self._refuse(refused, one)
        for one in given[MAX_COMMANDS:]:
            self._refuse(CommandRefused("too_many"), one)
        self.look()

    def look(self) -> None:
        """About once a second: says what has begun, and what is over."""
        held = SWITCH.held
        if held is not None and time.monotonic() >= held.end:
            self._end("its time is over")
        elif (
            held is not None and self._begun is None and held.in_force() and self._last is not None
        ):
            self._begun = self._last
            self._recorder.eager_everywhere(*eager_by_request())
            self._receipt("applied", self._last, callables=SWITCH.routes)

    def close(self) -> None:
        """The agent stops: nothing that it did outlives it."""
        if SWITCH.held is not None:
            self._end("the agent stops")

    def _follow(self, command: Command) -> None:
        last = self._last
        if last is not None and (command.counter, command.id) == (last.counter, last.id):
            return
        self._check(command)
        self._last = command
        if command.ask:
            self._receipt("ready", command, callables=SWITCH.routes)
        elif command.verb == RESTORE:
            self._restore(command)
        else:
            self._hold(command)

    def _check(self, command: Command) -> None:
        who, now = self._identity(), time.time()
        if self._last is not None and command.counter <= self._last.counter:
            raise CommandRefused("replayed", command=command)
        if (command.model, command.version, command.environment) != (
            who.model,
            who.version,
            who.environment,
        ):
            raise CommandRefused("wrong_target", command=command)
        if not command.concerns(who.id, who.job):
            raise CommandRefused("wrong_target", "instance", command)
        if command.verb not in (*self._allowed, RESTORE):
            raise CommandRefused("not_allowed", command=command)
        if command.expires <= now:
            raise CommandRefused("expired", command=command)
        if command.expires - now > MAX_LIFETIME + CLOCKS_DIFFER:
            raise CommandRefused("too_long", command=command)
        if not SWITCH.routes:
            raise CommandRefused("nothing_to_switch", command=command)

    def _hold(self, command: Command) -> None:
        """In force from its moment on; one that is in force already with the same verb goes on without a gap."""
        now, present = time.monotonic(), SWITCH.held
        begin = now + max(0.0, command.not_before - time.time())
        end = now + min(command.expires - time.time(), MAX_LIFETIME)
        if present is not None and present.verb == command.verb and present.in_force():
            present.end = end
            self._begun = self._begun and command
            self._receipt("accepted", command)
            return
        if present is not None:
            self._end("another command takes its place")
        self._recorder.commanded = True
        SWITCH.held = Held(command.verb, begin, end)
        self._recorder.sampler.stop()
        self._receipt("accepted", command)

    def _restore(self, command: Command) -> None:
        """At its moment, so that all ranks go back together."""
        held = SWITCH.held
        self._receipt("accepted", command)
        if held is not None:
            held.end = min(held.end, time.monotonic() + max(0.0, command.not_before - time.time()))

    def _end(self, why: str) -> None:
        begun, self._begun, SWITCH.held = self._begun, None, None
        self._recorder.commanded = False
        self._recorder.eager_everywhere(*eager_by_request())
        if begun is not None:
            self._receipt("ended", begun, why=why)

    def _refuse(self, refused: CommandRefused, given: Any) -> None:
        """Counted always; told once for each command, as long as they are few enough to read."""
        self.refused[refused.code] = self.refused.get(refused.code, 0) + 1
        digest = hashlib.sha256(repr(given).encode("utf-8", "replace")).hexdigest()
        if digest in self._told or len(self._told) >= MAX_TOLD:
            return
        self._told.add(digest)
        self._receipt("refused", refused.command, why=refused.code, detail=refused.detail)

    def _receipt(self, state: str, command: Command | None, **more: Any) -> None:
        known = (
            {"command": command.id, "verb": command.verb, "counter": command.counter}
            if command is not None
            else {}
        )
        told = {key: value for key, value in more.items() if value != ""}
        self._recorder.fact(
            "command_receipt",
            {**known, "state": state, **told, "refused": sum(self.refused.values())},
        )
