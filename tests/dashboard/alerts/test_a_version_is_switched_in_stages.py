"""A kill switch asks first, starts with one instance or job, advances while it is healthy, and
reverts automatically; every step is recorded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from compilewatch.wire.command import Command, command_open, command_open_public
from compilewatch.wire.ed25519 import PublicKey
from compilewatch.wire.messages import Fact, Report, Request

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts.kill_switch.models import Switch
from dashboard.alerts.kill_switch.services import (
    KillSwitchError,
    kill_switch_begin,
    kill_switch_end,
    kill_switches_advance,
)
from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import CommandReceipt, ModelVersion
from dashboard.ingest.commands import CommandTarget, clear_command_cache, list_live_commands
from dashboard.projects.command_key import command_key_create, derive_command_key, list_public_keys
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Time

PLACE = CommandTarget("ranker", "1", "production")
Store = Callable[..., object]


@dataclass
class Process:
    """An instance as seen by the dashboard: it reports, opens the commands in the responses, and
    returns receipts. Every second instance has the project's public key, the others have the
    symmetric key."""

    number: int
    key: str
    public_key: str
    job: str = ""
    rank: int = 0
    world_size: int = 1
    allows: str = "freeze, eager"
    deaf: bool = False
    seconds: float = 0.01
    seq: int = 1
    held: str = ""
    known: set[str] = field(default_factory=set)
    facts: list[Fact] = field(default_factory=list)
    name: str = ""

    def hear(self, given: list[dict[str, Any]]) -> None:
        for one in given:
            public = self.number % 2 and self.public_key
            order = (
                command_open_public(one, public, PublicKey(bytes.fromhex(public)).verify)
                if public
                else command_open(one, self.key)
            )
            if order.id not in self.known and not self.deaf:
                self.known.add(order.id)
                self._follow(order)

    def _follow(self, order: Command) -> None:
        if order.verb not in (*self.allows.split(", "), "restore"):
            self._tell("refused", order, why="not_allowed")
            return
        if order.ask:
            self._tell("ready", order)
            return
        before, self.held = self.held, "" if order.verb == "restore" else order.verb
        self._tell("accepted", order)
        if self.held and not before:
            self._tell("applied", order)
        elif before and not self.held:
            self._tell("ended", order, why="its time is over")

    def _tell(self, state: str, order: Command, **more: str) -> None:
        data = {
            "command": order.id,
            "verb": order.verb,
            "counter": order.counter,
            "state": state,
            "callables": 2,
            "refused": 0,
            **more,
        }
        self.facts.append(Fact("command_receipt", clock.unix(), data))


@dataclass
class World:
    """Processes of version 1, a clock, and the dashboard that connects them."""

    project: Project
    time: Time
    store: Store
    make: Callable[..., Request]
    processes: list[Process] = field(default_factory=list)

    def add(self, count: int, **wanted: Any) -> list[Process]:
        keys, first = (
            (derive_command_key(self.project), list_public_keys(self.project)[0]),
            len(self.processes),
        )
        made = [
            Process(first + place, *keys, **{**wanted, "rank": place if "job" in wanted else 0})
            for place in range(count)
        ]
        self.processes += made
        return made

    def minute(self, count: int = 1) -> None:
        """All processes report every 20 s and receive their commands, then the kill switches
        advance."""
        for _ in range(3 * count):
            self.time.go(20)
            for process in self.processes:
                self._report(process)
            fold_all()
            kill_switches_advance()
            clear_command_cache()
            for process in self.processes:
                process.hear(
                    list_live_commands(
                        project_id=self.project.pk,
                        place=PLACE,
                        instance=process.name,
                        job=process.job,
                    )
                )

    def _report(self, process: Process) -> None:
        facts, process.facts = process.facts, []

        def change(report: Report) -> None:
            report.facts = facts

        request = self.make(
            instance=process.number,
            first_seq=process.seq,
            window=20.0,
            change=change,
            p50=process.seconds,
        )
        process.seq += 1
        capabilities = {"switch": ("yes", process.allows)} if process.allows else {}
        place = {"job": process.job, "rank": process.rank, "world_size": process.world_size}
        identity = replace(
            request.instance, model="ranker", version="1", capabilities=capabilities, **place
        )
        process.name = identity.id
        self.store(replace(request, instance=identity, sent=clock.unix()))

    def begin(self, user: User, verb: str = "freeze", minutes: int = 30) -> Switch:
        version = ModelVersion.objects.select_related("project", "model").get(name="1")
        return kill_switch_begin(
            version=version,
            environment="production",
            verb=verb,
            minutes=minutes,
            note="too many recompiles",
            user=user,
        )

    def held(self) -> list[int]:
        return [process.number for process in self.processes if process.held]


@pytest.fixture
def world(
    project: Project,
    time: Time,
    store_reports: Store,
    make_request: Callable[..., Request],
    user: User,
) -> World:
    command_key_create(project=project, actor=user)
    clear_command_cache()
    return World(project, time, store_reports, make_request)


def test_one_instance_is_first_and_the_others_follow_while_it_is_healthy(
    world: World, user: User
) -> None:
    world.add(8)
    world.minute(6)
    switch = world.begin(user)
    world.minute(2)
    assert len(world.held()) == 1
    seen = [len(world.held())]
    for _ in range(14):
        world.minute()
        seen.append(len(world.held()))
    assert sorted(set(seen)) == [1, 2, 8] and seen == sorted(seen)  # one, 25%, all
    world.minute(20)
    switch.refresh_from_db()
    assert world.held() == [] and (switch.phase, switch.ended_why) == (
        "over",
        "the requested time is over",
    )
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"switch.begin", "switch.command"} <= actions
    told = list(switch.events.order_by("pk").values_list("text", flat=True))
    assert (
        told[0].startswith("Requested to compile nothing new for 30 min")
        and told[-1] == "Reverted: the requested time is over."
    )
    assert CommandReceipt.objects.filter(state="applied").count() == 8


def test_all_ranks_of_a_job_or_none(world: World, user: User) -> None:
    ranks = world.add(2, job="train-7", world_size=2)
    world.minute(6)
    ranks[1].deaf = True
    switch = world.begin(user)
    world.minute(3)
    switch.refresh_from_db()
    assert world.held() == [] and "1 of 2 instances did not answer in time" in switch.ended_why
    ranks[1].deaf = False
    switch = world.begin(user, "eager")
    world.minute(2)
    assert world.held() == [0, 1]
    rows = switch.events.filter(text__contains="all ranks at the same moment")
    assert rows.exists()


def test_a_job_with_a_rank_that_does_not_allow_it_is_not_asked(world: World, user: User) -> None:
    ranks = world.add(2, job="train-7", world_size=2)
    ranks[1].allows = "freeze"
    world.minute(2)
    with pytest.raises(
        KillSwitchError, match="version: no reporting instance of 1 in production allows eager"
    ):
        world.begin(user, "eager")
    assert not Switch.objects.exists()


def test_it_reverts_when_the_first_instance_gets_slower(world: World, user: User) -> None:
    world.add(4)
    world.minute(7)
    switch = world.begin(user)
    world.minute(1)
    [first] = world.held()
    world.processes[first].seconds = 0.05
    world.minute(6)
    switch.refresh_from_db()
    assert world.held() == [] and switch.ended_why.startswith("p95 rose to "), switch.ended_why


def test_an_operator_cancels_it_immediately(world: World, user: User) -> None:
    world.add(1)
    world.minute(2)
    switch = world.begin(user)
    world.minute(2)
    assert world.held() == [0]
    kill_switch_end(switch=switch, user=user)
    world.minute(1)
    switch.refresh_from_db()
    assert world.held() == [] and switch.ended_why == "cancelled by ada"


def test_it_is_renewed_while_wanted_and_expires_without_the_dashboard(
    world: World, user: User
) -> None:
    world.add(1)
    world.minute(2)
    world.begin(user, minutes=60)
    world.minute(30)
    assert world.held() == [0]
    clear_command_cache()
    [given] = list_live_commands(
        project_id=world.project.pk, place=PLACE, instance=world.processes[0].name, job=""
    )
    assert command_open(given, derive_command_key(world.project)).expires <= clock.unix() + 300


def test_without_a_key_or_a_reason_nothing_starts(
    world: World, user: User, other_project: Project
) -> None:
    world.add(1)
    world.minute(1)
    version = ModelVersion.objects.select_related("project", "model").get()
    asked = {
        "version": version,
        "environment": "production",
        "verb": "freeze",
        "minutes": 15,
        "note": "x",
        "user": user,
    }
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"verb": "exec"}, "verb"),
        ({"minutes": 7}, "minutes"),
        ({"note": " "}, "note"),
    ]
    for change, field_ in (*wrong, ({"environment": "x"}, "version")):
        with pytest.raises(KillSwitchError, match=f"^{field_}: "):
            kill_switch_begin(**(asked | change))  # type: ignore[arg-type]
    assert derive_command_key(other_project) == "" and derive_command_key(world.project).startswith(
        "cw_cmd_"
    )
    world.project.settings = {}
    world.project.save()
    version.project.refresh_from_db()
    with pytest.raises(KillSwitchError, match=r"^key: "):
        kill_switch_begin(**asked)  # type: ignore[arg-type]
