"""All findings of a project in a list with filters, sorting and paging, and one finding with the
versions that showed it and the later versions that did not."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.finding_states import update_finding_states
from dashboard.fleet.models import CompileEvent, Finding, FindingLife, FindingVersion, Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import ENVIRONMENT, Made, Plan, charted
from tests.dashboard.ui.charts_story import finding

LIST = "/p/ranking/findings/"
GUARD = "tensor 'candidates' size mismatch at index 0. expected *, actual *"


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def two_versions(project: Project) -> Made:
    return charted(project, Plan("1", start=300, per_gpu=1), Plan("2", start=100, per_gpu=1))


def recompiled(
    made: Made, version: str, values: list[int | str], *, kind: str = "recompile"
) -> None:
    instance = (
        Instance.objects.filter(version=made.versions[version]).order_by("instance_id").first()
    )
    assert instance is not None
    at = clock.now() - timedelta(minutes=50)
    for number, value in enumerate(values):
        CompileEvent.objects.create(
            project_id=made.project.pk,
            day=int(at.timestamp() // 86400),
            instance_id=instance.pk,
            seq=number + 1,
            number=0,
            version_id=made.versions[version].pk,
            environment=ENVIRONMENT,
            at=at,
            compile_id=f"0/{number + 1}",
            frame="score",
            file="ranker/score.py",
            line=118,
            kind=kind,
            reason=f"tensor 'candidates' size mismatch at index 0. expected 64, actual {value}"
            if kind == "recompile"
            else "",
            outcome="ok",
            entries=number + 2,
            entry_limit=8,
        )


def test_the_address_filters_the_list(signed_in: Client, project: Project) -> None:
    made = two_versions(project)
    finding(made, "guard", GUARD, "ranker/score.py:118 in score", {"2": 53})
    finding(made, "graph_break", "Tensor.item() call", "ranker/features.py:61", {"1": 4, "2": 3})
    update_finding_states()
    assert "2 findings" in shown(signed_in, LIST)
    for query in (
        f"model={made.model.pk}&version={made.versions['1'].pk}",
        "kind=graph_break",
        "q=FEATURES.py",
        "state=ongoing",
    ):
        text = shown(signed_in, f"{LIST}?{query}")
        assert (
            "Tensor.item() call" in text and "size mismatch" not in text and "1 finding<" in text
        ), query
    empty = shown(signed_in, f"{LIST}?kind=oom")
    assert "No matching findings" in empty and '<option value="oom" selected>' in empty
    assert "2 findings" in shown(
        signed_in, f"{LIST}?kind=&state=nonsense&model=x&version=9&sort=7&page=-3"
    )


def test_the_list_counts_within_the_requested_version(signed_in: Client, project: Project) -> None:
    made = two_versions(project)
    finding(made, "graph_break", "Tensor.item() call", "ranker/features.py:61", {"1": 40, "2": 3})
    rows = signed_in.get(
        f"/p/ranking/findings.json?model={made.model.pk}&version={made.versions['2'].pk}"
    ).json()["findings"]
    assert [(row["times"], row["kind"]) for row in rows] == [(3, "graph_break")]
    assert signed_in.get("/p/ranking/findings.json").json()["findings"][0]["times"] == 43
    table = signed_in.get("/p/ranking/findings.csv").content.decode().splitlines()
    assert table[0].startswith("finding,kind,text") and "graph_break" in table[1]


def test_ten_thousand_findings_need_as_many_queries_as_two(
    signed_in: Client, project: Project
) -> None:
    made = two_versions(project)
    finding(made, "guard", GUARD, "ranker/score.py:118", {"2": 1})
    with CaptureQueriesContext(connection) as few:
        shown(signed_in, LIST)
    version, now = made.versions["2"], clock.now()
    many = Finding.objects.bulk_create(
        Finding(
            project=project, model=made.model, kind="graph_break", fingerprint=f"f{number}", text=f"break {number}", first_version=version,
            last_version=version, first_seen_at=now, last_seen_at=now - timedelta(seconds=number), count=number,
        )
        for number in range(9_999)
    )  # fmt: skip
    FindingVersion.objects.bulk_create(
        FindingVersion(
            finding=one,
            version=version,
            environment=ENVIRONMENT,
            count=1,
            first_seen_at=now,
            last_seen_at=now,
        )
        for one in many
    )
    with CaptureQueriesContext(connection) as caught:
        first = shown(signed_in, LIST)
    assert len(caught) == len(few)
    assert (
        "10,000 findings</h2>" in first
        and "1 to 50 of 10,000 findings" in first
        and "page 1 of 200" in first
        and 'rel="prev"' not in first
    )
    last = shown(signed_in, f"{LIST}?page=99999&sort=-times")
    assert "9,951 to 10,000 of 10,000" in last and 'rel="next"' not in last and "break 48<" in last


def test_a_project_without_findings_states_when_one_appears(
    signed_in: Client, project: Project
) -> None:
    text = shown(signed_in, LIST)
    assert "No findings yet" in text and "/p/ranking/setup/" in text


def test_one_finding_is_broken_down_by_version_and_instance(
    signed_in: Client, project: Project
) -> None:
    made = two_versions(project)
    one = finding(
        made,
        "graph_break",
        "GB0124 Unsupported Tensor.item() call\nsecond line",
        "ranker/features.py:61",
        {"1": 4, "2": 3},
    )
    update_finding_states()
    text = shown(signed_in, f"{LIST}{one.pk}/")
    assert "gb0124.html" in text and "second line" in text and "7 times on 4 instances" in text
    assert (
        "capture_scalar_outputs" in text
        and "ongoing since" in text
        and "gpu-h200-00 / rank 0" in text
    )
    told = signed_in.get(f"/p/ranking/findings/{one.pk}.json").json()
    assert {row["version"]: (row["count"], row["instances"]) for row in told["versions"]} == {
        "1": (4, 2),
        "2": (3, 2),
    }
    assert "2,production,3,2" in signed_in.get(f"/p/ranking/findings/{one.pk}.csv").content.decode()


def test_a_guard_is_shown_with_its_values_its_headroom_and_the_fixes(
    signed_in: Client, project: Project
) -> None:
    made = two_versions(project)
    one = finding(made, "guard", GUARD, "ranker/score.py:118 in score", {"2": 6})
    recompiled(made, "2", [72, 72, 80, 96, 97, "#"])
    text = shown(signed_in, f"{LIST}{one.pk}/")
    assert "the size of dimension 0 of <code>candidates</code>" in text
    assert (
        "torch._dynamo.mark_dynamic(candidates, 0)" in text
        and "TORCH_COMPILE_DYNAMIC_SOURCES=\"L['candidates']\"" in text
    )
    assert (
        "7 of 8 cache entries used on the fullest of 1 instance" in text
        and "1 more recompilation until" in text
    )
    buckets = signed_in.get(f"/p/ranking/findings/{one.pk}.json").json()["way_out"]["values"][
        "buckets"
    ]
    assert [(row["label"], row["count"]) for row in buckets] == [
        ("72", 2),
        ("80", 1),
        ("96", 1),
        ("97", 1),
        ("1,000 and more", 1),
    ]


def test_a_guard_without_a_value_does_not_show_values_of_another_guard_of_its_frame(
    signed_in: Client, project: Project
) -> None:
    made = two_versions(project)
    one = finding(made, "guard", "not G['cache']", "ranker/score.py:118 in score", {"2": 1})
    recompiled(made, "2", [72, 80, 96])
    text = shown(signed_in, f"{LIST}{one.pk}/")
    assert "names no size, length or number" in text and "Values that failed the guard" not in text
    assert signed_in.get(f"{LIST}{one.pk}.json").json()["way_out"]["values"]["buckets"] == []


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (30, "too early:"),
        (90, "gone: 1 h 30 min of reports and 2 compilations of the same place"),
    ],
)
def test_a_version_deployed_after_the_finding_shows_that_it_is_gone(
    signed_in: Client, project: Project, minutes: int, said: str
) -> None:
    made = charted(
        project, Plan("1", start=300, end=80, per_gpu=1), Plan("2", start=minutes, per_gpu=1)
    )
    one = finding(made, "guard", GUARD, "ranker/score.py:118 in score", {"1": 6}, ago=200)
    recompiled(made, "2", [1, 2], kind="first")
    text = shown(signed_in, f"{LIST}{one.pk}/")
    assert said in text and "still running" in text


def test_a_version_deployed_before_the_finding_shows_nothing(
    signed_in: Client, project: Project
) -> None:
    made = two_versions(project)
    one = finding(made, "guard", GUARD, "ranker/score.py:118 in score", {"2": 6})
    assert "No version has been deployed since" in shown(signed_in, f"{LIST}{one.pk}/")


def test_a_finding_of_another_project_is_not_found(
    signed_in: Client, other_project: Project
) -> None:
    made = charted(other_project, Plan("1", start=30, per_gpu=1))
    one = finding(made, "guard", GUARD, "", {"1": 6})
    assert signed_in.get(f"{LIST}{one.pk}/").status_code == 404
    assert signed_in.get(f"{LIST}{10**18}/").status_code == 404
    assert "No findings yet" in shown(signed_in, LIST)


def test_the_findings_of_a_model_are_a_tab(signed_in: Client, project: Project) -> None:
    made = two_versions(project)
    one = finding(made, "guard", GUARD, "", {"2": 6})
    FindingLife.objects.create(
        finding=one,
        environment=ENVIRONMENT,
        state="new",
        since_minute=0,
        first_version=made.versions["2"],
        last_version=made.versions["2"],
    )
    assert f'href="{made.url("findings/")}"' in shown(signed_in, made.url())
    for query in ("", "?view=all"):
        assert f'href="{LIST}{one.pk}/"' in shown(signed_in, made.url(f"findings/{query}"))
