"""The complete data of one charted model: the verdict of the real judge, findings in three
relations, and recompilations of one frame."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from dashboard.common import clock
from dashboard.fleet.models import (
    CompileEvent,
    Finding,
    FindingInstance,
    FindingVersion,
    Instance,
    RegionMinute,
    Series,
)
from dashboard.projects.models import Project
from dashboard.regressions.judge.evaluate import judge
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import (
    ENVIRONMENT,
    HEALTHY,
    OLDER,
    WORSE,
    Made,
    charted,
    now_minute,
)


def rolled_back(project: Project) -> Made:
    """The complete data: an older version, a baseline, a regressed version with its verdict,
    findings and compilations."""
    made = charted(project, OLDER, HEALTHY, WORSE)
    judged(made, HEALTHY.name, WORSE.name)
    findings(made)
    compilations(made, WORSE.name)
    return made


def judged(made: Made, baseline: str, candidate: str) -> Verdict:
    """The verdict of the real judge on the candidate, stored as the services store it."""
    deployment = made.deployments[candidate]
    sides = {made.versions[baseline].pk: "baseline", made.versions[candidate].pk: "candidate"}
    outcome = judge(
        _judge_rows(made, sides), now_minute=now_minute(), deployed_minute=deployment.started_minute
    )
    return Verdict.objects.create(
        project=made.project,
        deployment=deployment,
        baseline=made.deployments[baseline],
        kind=outcome.verdict,
        sentence=f"Roll back {candidate}: its p50 is 31% slower (24% to 38%) on all 4 instances, "
        "because 28.8% of calls run eager.",
        cause="score_batch reached its recompile limit of 8.",
        evidence=outcome.as_dict(),
        minute=now_minute() - 1,
        since_minute=deployment.started_minute + 20,
        created_at=clock.now(),
    )


def _judge_rows(made: Made, sides: dict[int, str]) -> Iterator[InstanceMinute]:
    series = {
        one.pk: one for one in Series.objects.filter(version_id__in=sides).select_related("stratum")
    }
    instances = {one.pk: one for one in Instance.objects.filter(version_id__in=sides)}
    for row in RegionMinute.objects.filter(series_id__in=series):
        one, instance = series[row.series_id], instances[row.instance_id]
        yield InstanceMinute(
            instance=instance.instance_id,
            unit=f"{instance.host} / {instance.rank}",
            arm=sides[one.version_id],  # type: ignore[arg-type]
            stratum=(one.stratum.gpu, one.stratum.mode, one.stratum.runtime),
            region=one.region,
            bucket=one.bucket,
            minute=row.minute,
            first_minute=instance.first_minute,
            calls=row.calls,
            compiled=row.compiled,
            eager=row.eager_limit,
            eager_by={"limit": row.eager_limit},
            p50=row.p50,
            p99=row.p99,
        )


def finding(
    made: Made, kind: str, text: str, where: str, seen: dict[str, int], *, ago: int = 100
) -> Finding:
    """A finding that each version in `seen` reported this number of times, on all its instances."""
    since: datetime = clock.now() - timedelta(minutes=ago)
    versions = [made.versions[name] for name in seen]
    made_finding = Finding.objects.create(
        project=made.project,
        model=made.model,
        kind=kind,
        fingerprint=f"{Finding.objects.count():032d}",
        text=text,
        where=where,
        first_version=versions[0],
        last_version=versions[-1],
        first_seen_at=since,
        last_seen_at=clock.now(),
        count=sum(seen.values()),
    )
    for name, count in seen.items():
        version = made.versions[name]
        common = {
            "finding": made_finding,
            "count": count,
            "first_seen_at": since,
            "last_seen_at": clock.now(),
        }
        FindingVersion.objects.create(version=version, environment=ENVIRONMENT, **common)
        for instance in Instance.objects.filter(version=version):
            FindingInstance.objects.create(instance=instance, **common)
    return made_finding


def findings(made: Made) -> None:
    """Findings of the worse version alone, of both versions, and of the healthy version alone."""
    finding(
        made,
        "guard",
        "candidates.size(0): expected 64, actual 72",
        "ranker/score.py:118",
        {WORSE.name: 53},
    )
    finding(
        made,
        "graph_break",
        "Tensor.item()\nCalling .item() breaks the graph",
        "ranker/features.py:61",
        {HEALTHY.name: 4, WORSE.name: 4},
    )
    finding(
        made,
        "cudagraph_skip",
        "skipping cudagraphs due to mutated inputs",
        "ranker/score.py:140",
        {HEALTHY.name: 12},
    )


def compilations(made: Made, version: str, **changed: Any) -> None:
    """One first compilation and recompilations of one frame on one instance."""
    instance = Instance.objects.filter(version=made.versions[version]).order_by("pk").first()
    assert instance is not None
    start = clock.now() - timedelta(minutes=100)
    for number in range(4):
        at = start + timedelta(minutes=2 * number)
        facts: dict[str, Any] = {
            "compile_id": f"0/{number}",
            "frame": "score_batch",
            "file": "ranker/score.py",
            "line": 118,
            "kind": "recompile" if number else "compile",
            "reason": "candidates.size(0) == 64" if number else "",
            "outcome": "ok",
            "total": 4.1,
            "phases": {"dynamo": 0.9, "aot": 0.4, "inductor": 2.4, "triton": 0.2},
            "cache_fx": "miss",
            "cache_aot": "miss",
            "in_request": number > 0,
        } | changed
        CompileEvent.objects.create(
            project_id=made.project.pk,
            day=clock.minute_of(at.timestamp()) // 1440,
            instance_id=instance.pk,
            seq=number,
            number=0,
            version_id=made.versions[version].pk,
            environment=ENVIRONMENT,
            at=at,
            **facts,
        )
