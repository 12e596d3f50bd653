"""Pipeline: the stages, their tasks and sweep intervals, as a flow on one screen.

    reports    -> ingest (web process) -> inbox rows
    engines    -> scrape    -> inbox rows of engines without an agent
    inbox rows -> fold      -> minutes, compile events, findings, deployments
    findings   -> lives     -> states: new, ongoing, gone, back
    minutes    -> judge     -> verdicts
    reports    -> ranks     -> verdicts on diverged ranks of a job
    verdicts   -> alert     -> alerts and pending deliveries
    minutes    -> rollbacks -> observed rollbacks, and whether the old level returned
    receipts   -> switch    -> kill-switch commands in the answers to reports
    deliveries -> deliver   -> Slack, webhooks
    verdicts   -> learn     -> variation of healthy instances, for the next day's verdicts
    requests   -> preview   -> error rates, detectable change and past verdicts of edited settings

A stage passes rows to the next stage. A finished stage nudges the next stage by its task name; a
lost nudge costs one interval, never data. The workers send each stage's task when its slot begins
(`scheduler.py`). A swept task first claims its slot in the database, so each slot runs once, with
any number of workers.
"""

from dataclasses import dataclass

TASK_EXPIRY_S = 10.0
"""Least age after which a task that no worker has taken is dropped."""


@dataclass(frozen=True)
class Stage:
    """A task that drains its table; `every` is the sweep interval in seconds."""

    name: str
    task: str
    every: float
    waiting: str = ""
    """A query for a row that waits for the stage; without such a row, the stage is idle."""

    @property
    def expiry(self) -> float:
        """Seconds after which a sent task is dropped; a later slot does its work."""
        return max(self.every, TASK_EXPIRY_S)


STAGES = (
    Stage("fold", "dashboard.fleet.tasks.fold", 1, "SELECT 1 FROM ingest_inbox LIMIT 1"),
    Stage("scrape", "dashboard.ingest.tasks.scrape", 15),
    Stage("deployments", "dashboard.fleet.tasks.deployments", 10),
    Stage("judge", "dashboard.regressions.tasks.judge", 5),
    Stage("preview", "dashboard.regressions.tasks.preview", 5),
    Stage("ranks", "dashboard.regressions.tasks.ranks", 5),
    Stage("alert", "dashboard.alerts.tasks.sweep", 5),
    Stage("rollbacks", "dashboard.alerts.tasks.rollbacks", 30),
    Stage(
        "switch",
        "dashboard.alerts.tasks.switch",
        5,
        "SELECT 1 FROM switch WHERE ended_at IS NULL LIMIT 1",
    ),
    Stage(
        "deliver",
        "dashboard.alerts.tasks.deliver",
        2,
        "SELECT 1 FROM alert_delivery WHERE state = 'waiting' LIMIT 1",
    ),
    Stage("lives", "dashboard.fleet.tasks.lives", 30),
    Stage("partitions", "dashboard.fleet.tasks.partitions", 3600),
    Stage("retention", "dashboard.fleet.tasks.retention", 3600),
    Stage("storage", "dashboard.fleet.tasks.storage", 600),
    Stage("learn", "dashboard.regressions.tasks.learn", 3600),
    Stage("sessions", "dashboard.accounts.tasks.sessions", 3600),
)


def stage_interval_s(name: str) -> float:
    """The sweep interval of a stage, in seconds."""
    return next(stage.every for stage in STAGES if stage.name == name)
