"""A complete fleet for page tests: one model at ROLL BACK with its alert, one at WATCH, one
healthy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, RollbackGuide
from dashboard.common import clock
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.factory import Shape, model, now_minute

SLOWER = (
    "Roll back 2026.11.3: p50 is 31% slower (24% to 38%) than 2026.11.2 on all 6 instances "
    "since 09:14."
)


def fleet(owner: Project, *, every: int = 1) -> Alert:
    """Three models; returns the open alert of the model at ROLL BACK."""
    ranker = model(
        owner,
        "ranker",
        [
            Shape("2026.11.2", 0.014, 120, 9000, instances=6),
            Shape("2026.11.3", 0.0184, 120, 170, eager=0.28, instances=6, peak=31.6),
        ],
        every=every,
    )
    chat = model(
        owner,
        "llm-7b-chat",
        [
            Shape("2026.11.1", 0.212, 40, 20000, instances=8, cold=74, peak=68.9, hit_share=0.94),
            Shape("2026.11.3", 0.213, 20, 220, instances=4, cold=161, peak=68.9, hit_share=0.41),
        ],
        every=every,
        budget=180.0,
    )
    embed = model(
        owner,
        "vit-embed",
        [
            Shape("2026.11.1", 0.0046, 200, 12000, end=900, instances=4, cold=24, peak=6.1),
            Shape("2026.11.2", 0.0042, 200, 910, instances=4, cold=22, peak=6.1, silent=1),
        ],
        every=every,
        budget=60.0,
    )
    verdict(
        chat,
        "watch",
        "Cache hits fell from 94% to 41% of compile seconds since 08:20. Calls are not slower.",
        [p50(0.212, 0.005, "NO CHANGE")],
    )
    verdict(
        embed,
        "healthy",
        "p50 is 6% faster than 2026.11.1 (4% to 8%); nothing worse.",
        [p50(0.0046, -0.06, "IMPROVED")],
        minutes_ago=600,
    )
    return alert(ranker)


def p50(baseline: float, change: float, label: str, *, drives: bool = False) -> dict[str, Any]:
    """One row of evidence as the judge stores it."""
    return {
        "metric": "p50",
        "region": "forward",
        "unit": "s",
        "label": label,
        "judged": True,
        "drives": drives,
        "since": now_minute() - 150,
        "baseline": baseline,
        "candidate": baseline * (1 + change),
        "change": change,
        "low": change - 0.07,
        "high": change + 0.07,
        "smallest_effect": 0.05,
        "baseline_instances": 6,
        "candidate_instances": 6,
        "matched_minutes": 130,
    }


def eager(share: float, *, drives: bool = True) -> dict[str, Any]:
    """The evidence row of the affected-instances rule."""
    return {
        "metric": "eager",
        "region": "forward",
        "unit": "share",
        "label": "REGRESSED",
        "judged": True,
        "drives": drives,
        "baseline": 0.0,
        "candidate": share,
        "change": None,
        "baseline_instances": 6,
        "candidate_instances": 6,
        "affected_instances": 6,
        "causes": {"limit": 4200},
    }


def verdict(
    owner: WatchedModel,
    kind: str,
    sentence: str,
    evidence: list[dict[str, Any]],
    *,
    minutes_ago: int = 60,
    current: bool = True,
    previous: str = "not_enough_data",
) -> Verdict:
    """A verdict on the newest deployment of a model."""
    deployments = list(Deployment.objects.filter(model=owner).order_by("started_minute"))
    return Verdict.objects.create(
        project=owner.project,
        deployment=deployments[-1],
        baseline=deployments[-2] if len(deployments) > 1 else None,
        kind=kind,
        previous_kind=previous,
        sentence=sentence,
        cause="score_batch reached its recompile limit of 8; the frame runs eager now."
        if kind == "roll_back"
        else "",
        evidence={
            "evidence": evidence,
            "not_compared": [{"what": "forward", "why": "no_baseline_in_bucket", "share": 0.09}]
            if kind == "roll_back"
            else [],
        },
        minute=now_minute() - 1,
        since_minute=now_minute() - 150,
        created_at=clock.now() - timedelta(minutes=minutes_ago),
        current=current,
    )


def alert(owner: WatchedModel, number: int = 418) -> Alert:
    """An open alert with its timeline and deliveries."""
    now = clock.now()
    watched = verdict(
        owner,
        "watch",
        "p50 is 24% slower (6% to 45%).",
        [p50(0.014, 0.24, "REGRESSED"), eager(0.11, drives=False)],
        minutes_ago=150,
        current=False,
    )
    worst = verdict(
        owner,
        "roll_back",
        SLOWER,
        [p50(0.014, 0.31, "REGRESSED", drives=True), eager(0.28)],
        minutes_ago=129,
        previous="watch",
    )
    made = Alert.objects.create(
        project=owner.project,
        deployment=worst.deployment,
        number=number,
        verdict=worst,
        severity="roll_back",
        worst="roll_back",
        title="ranker 2026.11.3: p50 31% slower, 28% of calls run eager",
        opened_at=now - timedelta(minutes=150),
    )
    line(made, "opened", watched.sentence, 150, watched)
    line(made, "verdict", worst.sentence, 129, worst)
    line(made, "delivered", "Slack #ml-ops took the message.", 128)
    RollbackGuide.objects.create(
        project=owner.project,
        model_name=owner.name,
        text="kubectl argo rollouts undo ranker",
        url="",
    )
    slack = Channel.objects.create(
        project=owner.project,
        kind="slack",
        name="#ml-ops",
        address="https://hooks.example/T/B/x",
        created_at=now,
    )
    hook = Channel.objects.create(
        project=owner.project,
        kind="webhook",
        name="Argo CD",
        address="https://argo.example/hook",
        created_at=now,
    )
    delivery(made, slack, "delivered", 200, "ok", 128)
    delivery(made, hook, "waiting", 503, "Service Unavailable", 127)
    return made


def line(
    owner: Alert,
    kind: str,
    text: str,
    minutes_ago: int,
    said: Verdict | None = None,
    actor: str = "",
) -> AlertEvent:
    """One entry of the timeline."""
    return AlertEvent.objects.create(
        alert=owner,
        at=clock.now() - timedelta(minutes=minutes_ago),
        kind=kind,
        text=text,
        verdict=said,
        actor_name=actor,
    )


def delivery(
    owner: Alert, channel: Channel, state: str, status: int, answer: str, minutes_ago: int
) -> Delivery:
    """One delivery of a notification."""
    at = clock.now() - timedelta(minutes=minutes_ago)
    return Delivery.objects.create(
        project=owner.project,
        channel=channel,
        alert=owner,
        kind="opened",
        message_id=f"msg_{owner.pk}_{channel.pk}_{minutes_ago}",
        facts={},
        state=state,
        attempts=1,
        next_attempt_at=clock.now() + timedelta(minutes=4),
        last_status=status,
        last_answer=answer,
        created_at=at,
        delivered_at=at if state == "delivered" else None,
    )
