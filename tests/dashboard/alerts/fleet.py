"""A model with deployed and evaluated versions; verdicts are written by the judge's own service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import Deployment, Instance, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judge_service import Judgement, verdict_write
from dashboard.regressions.models import Verdict

START = 1_795_000_000.0


class Time:
    """The clock of a test; it moves only on `go`."""

    def __init__(self) -> None:
        self.seconds = START

    def __call__(self) -> float:
        return self.seconds

    def go(self, seconds: float) -> None:
        self.seconds += seconds


def evidence_row(metric: str = "p50", **other: Any) -> dict[str, Any]:
    """One evidence row in the judge's format."""
    row = {
        "metric": metric,
        "region": "forward",
        "unit": "s",
        "label": "REGRESSED",
        "judged": True,
        "drives": True,
        "baseline": 0.0140,
        "candidate": 0.0183,
        "change": 0.31,
        "low": 0.24,
        "high": 0.38,
        "worse": 1,
        "baseline_instances": 6,
        "candidate_instances": 6,
        "affected_instances": 6,
        "affected_share": 1.0,
    }
    return {**row, **other}


@dataclass
class Fleet:
    """Deploys versions of one model and writes verdicts about them."""

    project: Project
    model: WatchedModel

    def deploy(self, name: str, environment: str = "prod") -> Deployment:
        now, minute = clock.now(), clock.minute_of(clock.unix())
        version, _ = ModelVersion.objects.get_or_create(
            project=self.project,
            model=self.model,
            name=name,
            defaults={"first_seen_at": now, "last_seen_at": now},
        )
        return Deployment.objects.create(
            project=self.project,
            model=self.model,
            version=version,
            environment=environment,
            started_minute=minute,
            last_minute=minute,
        )

    def run(
        self,
        deployment: Deployment,
        host: str,
        gpu: str = "NVIDIA H100",
        torch: str = "2.11",
        **identity: str,
    ) -> Instance:
        """One more live instance of the deployment."""
        now, minute = clock.now(), clock.minute_of(clock.unix())
        of = {
            "project": self.project,
            "model": self.model,
            "version": deployment.version,
            "environment": deployment.environment,
        }
        number = Instance.objects.count()
        moments = {
            "started_at": now,
            "last_seen_at": now,
            "first_minute": minute,
            "active_minute": minute,
            "last_minute": minute,
        }
        return Instance.objects.create(
            instance_id=f"{number:026}",
            host=host,
            gpu=gpu,
            torch=torch,
            identity=identity,
            **moments,
            **of,
        )

    def say(
        self,
        deployment: Deployment,
        kind: str,
        sentence: str = "",
        baseline: Deployment | None = None,
        **other: Any,
    ) -> Verdict:
        said = sentence or f"{deployment.version.name} is {kind}."
        rows = {
            "evidence": other.get("rows", [evidence_row()]),
            "environment": other.get("differs", []),
            "facts": other.get("facts", []),
        }
        minute = clock.minute_of(clock.unix())
        judgement = Judgement(kind, said, other.get("cause", ""), rows, minute - 10)
        with write_transaction():
            verdict_write(
                deployment=deployment, baseline=baseline, judgement=judgement, minute=minute
            )
        return Verdict.objects.get(deployment=deployment, current=True)

    def end(self, deployment: Deployment) -> None:
        Deployment.objects.filter(pk=deployment.pk).update(
            ended_minute=clock.minute_of(clock.unix())
        )


def fleet_make(project: Project, name: str = "ranker", *, simulated: bool = False) -> Fleet:
    """A model without versions."""
    now = clock.now()
    model = WatchedModel.objects.create(
        project=project, name=name, first_seen_at=now, last_seen_at=now, simulated=simulated
    )
    return Fleet(project, model)
