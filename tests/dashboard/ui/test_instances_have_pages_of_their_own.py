"""The instances of a model in a list with heat strips, the page of one instance with all its facts,
and the traits that the bad instances share."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.db.models import Max
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, Instance, RegionMinute
from dashboard.ingest.models import Sender
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import ENVIRONMENT, Made, Plan, charted
from tests.dashboard.ui.charts_story import compilations, finding, rolled_back


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


@pytest.fixture
def made(project: Project) -> Made:
    return charted(project, Plan("1", start=70), Plan("2", start=70))


def one(made: Made, version: str, host: str) -> Instance:
    return Instance.objects.get(version=made.versions[version], host=host)


def changed(instance: Instance, **columns: object) -> Instance:
    Instance.objects.filter(pk=instance.pk).update(**columns)
    return instance


def test_instances_are_listed_by_severity(signed_in: Client, made: Made) -> None:
    changed(
        one(made, "2", "gpu-h100-01"),
        compiling_for=2000.0,
        compiling_frame="score",
        compiling_usual=4.0,
    )
    Instance.objects.filter(version=made.versions["1"]).update(ready_at=clock.now())
    text = shown(signed_in, made.url("instances/"))
    assert "8 instances" in text and "1</b> hung" in text and "score for 33 min" in text
    assert (
        text.index("gpu-h100-01 / rank 0")
        < text.index("score for 33 min")
        < text.index("gpu-h200-00 / rank 0")
    )
    told = signed_in.get(made.url("instances.json")).json()
    assert (
        told["instances"][0]["state"] == "hung"
        and told["states"]["hung"] == 1
        and told["total"] == 8
    )
    assert len(signed_in.get(made.url("instances.csv")).content.decode().splitlines()) == 9


def test_a_blind_instance_states_the_reason_and_does_not_blame_torch(
    signed_in: Client, made: Made
) -> None:
    why = ["no", "torch._dynamo is not imported"]
    blind = changed(
        one(made, "2", "gpu-h100-01"),
        capabilities={"compilations": why, "compiled_calls": why},
        ready_at=clock.now(),
    )
    text = shown(signed_in, made.url(f"instances/{blind.instance_id}/"))
    assert (
        "but not whether calls run compiled (torch._dynamo is not imported). The execution mode is unknown"
        in text
    )
    note = shown(signed_in, "/p/ranking/").split("1 blind instance")[1][:200]
    assert (
        "no compilations and compiled calls, torch._dynamo is not imported" in note
        and "gives no" not in note
    )


def test_the_address_filters_the_list(signed_in: Client, made: Made) -> None:
    wanted = signed_in.get(
        made.url(f"instances.json?version={made.versions['1'].pk}&gpu=NVIDIA+H100&q=-01")
    ).json()
    assert [(row["version"], row["host"]) for row in wanted["instances"]] == [("1", "gpu-h100-01")]
    assert "No matching instances" in shown(signed_in, made.url("instances/?q=nowhere"))
    strange = made.url("instances/?version=x&state=y&sort=z&show=w&range=9y&page=-1&env=nowhere")
    assert "8 instances" in shown(signed_in, strange)


def test_a_slow_instance_is_above_its_version_and_a_gap_stays_a_gap(
    signed_in: Client, made: Made
) -> None:
    slow = one(made, "2", "gpu-h200-00")
    # A slow machine needs minutes to reach this line, so the range ends with the data and not at
    # the current time.
    ends = (
        RegionMinute.objects.filter(instance_id=slow.pk).aggregate(ends=Max("minute"))["ends"] + 1
    )
    since = ends - 20
    for row in RegionMinute.objects.filter(instance_id=slow.pk, minute__gte=since):
        RegionMinute.objects.filter(
            instance_id=slow.pk, series_id=row.series_id, minute=row.minute
        ).update(p50=(row.p50 or 0) * 1.5)
    RegionMinute.objects.filter(
        instance_id=slow.pk, minute__lt=since, minute__gte=since - 10
    ).delete()
    rows = {
        row["id"]: row["p50"]
        for row in signed_in.get(made.url("instances.json?range=1h")).json()["instances"]
    }
    mine, others = rows.pop(slow.instance_id), rows
    values = [mine[str(minute)] for minute in range(since, ends)]
    assert all(value is not None and 1.3 < value < 1.7 for value in values)
    assert all(mine[str(minute)] is None for minute in range(since - 10, since))
    assert all(
        value is None or 0.8 < value < 1.2 for cells in others.values() for value in cells.values()
    )
    text = shown(signed_in, made.url("instances/?range=1h"))
    assert 'class="h4"' in text and "highest +5" in text and "gaps" in text
    for show in ("eager", "compiling"):
        assert (
            "highest 0%" in shown(signed_in, made.url(f"instances/?range=1h&show={show}"))
            or show == "compiling"
        )


def test_the_worst_slot_does_not_begin_before_the_instance_starts(
    signed_in: Client, made: Made
) -> None:
    """A slot of the 24 h range has ten minutes, so the worst slot may begin before the process
    starts."""
    minute = clock.minute_of(clock.unix()) - 25
    started = clock.at_minute(minute) + timedelta(seconds=30)
    slow = changed(one(made, "2", "gpu-h100-01"), started_at=started)
    RegionMinute.objects.filter(instance_id=slow.pk).exclude(minute=minute).delete()
    text = shown(signed_in, made.url(f"instances/?range=24h&version={slow.version_id}"))
    row = text[text.index("gpu-h100-01") :]
    assert re.search(rf"highest [^ ]+% at [^;]*{started:%H:%M}", row[: row.index("</tr")]), row[
        : row.index("</tr")
    ]


def test_the_time_before_the_start_of_an_instance_is_not_a_gap(
    signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = clock.unix()  # keeps minutes that pass on a slow machine out of the range
    monkeypatch.setattr(clock, "unix", lambda: moment)
    made = charted(project, Plan("1", start=30, per_gpu=1))

    def rows() -> str:
        return (
            shown(signed_in, made.url("instances/?range=1h"))
            .split("<tbody", 1)[1]
            .split("</tbody", 1)[0]
        )

    assert "highest" in rows() and "gap" not in rows()
    Instance.objects.update(started_at=clock.now() - timedelta(minutes=50))
    assert "gaps" in rows()


def test_shared_traits_of_bad_instances_are_ranked_with_their_counts(
    signed_in: Client, made: Made
) -> None:
    Instance.objects.update(
        ready_at=clock.now(), known_calls=100, capabilities={"compiled_calls": ["yes", ""]}
    )
    bad = Instance.objects.filter(gpu="NVIDIA H100")
    bad.update(eager_calls=90, identity={"driver": "570.12"})
    Instance.objects.filter(gpu="NVIDIA H200").update(identity={"driver": "550.54"})
    told = signed_in.get(made.url("instances.json")).json()["differs"]
    assert (told[0]["what"], told[0]["value"], told[0]["sure"]) == ("gpu", "NVIDIA H100", "weak")
    assert "driver 570.12" in told[0]["also"] and told[0]["counts"].startswith(
        "all 4 eager instances and none of 4"
    )
    text = shown(signed_in, made.url("instances/"))
    assert "What degraded instances have in common" in text and "maybe" in text


def test_a_healthy_fleet_makes_no_claim(signed_in: Client, made: Made) -> None:
    assert "There are no hung, silent, eager or degraded instances." in shown(
        signed_in, made.url("instances/")
    )


def test_if_all_instances_are_bad_there_is_nothing_to_compare_with(
    signed_in: Client, made: Made
) -> None:
    assert "vs 8 other instances" in shown(signed_in, made.url("instances/"))
    Instance.objects.update(last_seen_at=clock.now() - timedelta(minutes=20))
    text = shown(signed_in, made.url("instances/"))
    assert "8</b> silent" in text and "8 silent instances vs 0 other instances" in text
    assert (
        "There are no other instances to compare with." in text
        and "There are no silent instances" not in text
    )


def test_an_empty_list_states_that_no_instance_reported(signed_in: Client, made: Made) -> None:
    Instance.objects.update(last_seen_at=clock.now() - timedelta(days=3))
    assert "No instance reported in the last 6 h" in shown(signed_in, made.url("instances/"))


def test_a_hundred_instances_need_as_many_queries_as_eight(signed_in: Client, made: Made) -> None:
    with CaptureQueriesContext(connection) as few:
        shown(signed_in, made.url("instances/"))
    like = one(made, "2", "gpu-h200-00")
    Instance.objects.bulk_create(
        Instance(
            project=made.project, model=made.model, version=like.version, environment=ENVIRONMENT, instance_id=f"many{number:022d}",
            host=f"node-{number:03d}", started_at=like.started_at, ready_at=clock.now(), first_minute=like.first_minute,
            active_minute=like.first_minute,            last_minute=like.last_minute, last_seen_at=clock.now(),
        )
        for number in range(100)
    )  # fmt: skip
    with CaptureQueriesContext(connection) as many:
        text = shown(signed_in, made.url("instances/?sort=name"))
    assert len(many) == len(few) <= 18
    assert "1 to 50 of 108 instances" in text and "page 1 of 3" in text
    assert "101 to 108 of 108" in shown(signed_in, made.url("instances/?sort=name&page=77"))


def test_the_page_of_an_instance_shows_its_configuration_and_its_blind_spots(
    signed_in: Client, made: Made
) -> None:
    it = changed(
        one(made, "2", "gpu-h200-00"),
        capabilities={
            "compiled_calls": ["yes", ""],
            "cuda_graph_skips": ["no", "no reason on 2.11"],
        },
        spool_errors=3,
        clock_offset=9.0,
        components={"torch": "2.11.0", "env TORCHINDUCTOR_MAX_AUTOTUNE": "1"},
    )
    Sender.objects.create(
        project=made.project,
        instance_id=it.instance_id,
        missing=2,
        first_seen_at=clock.now(),
        last_seen_at=clock.now(),
    )
    finding(made, "graph_break", "Tensor.item() call", "ranker/features.py:61", {"2": 4})
    text = shown(signed_in, made.url(f"instances/{it.instance_id}/"))
    assert (
        "no reason on 2.11" in text
        and "3 spool errors" in text
        and "2 reports missing" in text
        and "9 s behind" in text
    )
    assert "2.13.0" in text and "3 of 4" in text, "most others of its version have another torch"
    assert "Tensor.item() call" in text and "slower than" in text
    assert ">env TORCHINDUCTOR_MAX_AUTOTUNE<" in text, "a name is shown as it is set"
    told = signed_in.get(made.url(f"instances/{it.instance_id}.json")).json()
    assert (
        told["capabilities"]["cuda_graph_skips"] == ["no", "no reason on 2.11"]
        and len(told["regions"]) == 2
    )
    assert (
        "score_batch" in signed_in.get(made.url(f"instances/{it.instance_id}.csv")).content.decode()
    )


def test_the_only_instance_of_a_version_is_not_compared_with_others(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=5, per_gpu=1))
    Instance.objects.filter(gpu="NVIDIA H100").delete()
    text = shown(signed_in, made.url(f"instances/{Instance.objects.get().instance_id}/"))
    assert "no other instance" in text and "varies" not in text


def test_a_slow_instance_is_compared_with_the_median_of_the_others(
    signed_in: Client, made: Made
) -> None:
    slow = one(made, "2", "gpu-h200-00")
    for row in RegionMinute.objects.filter(instance_id=slow.pk):
        RegionMinute.objects.filter(
            instance_id=slow.pk, series_id=row.series_id, minute=row.minute
        ).update(p50=(row.p50 or 0) * 2)
    regions = signed_in.get(made.url(f"instances/{slow.instance_id}.json")).json()["regions"]
    assert all(line["slower"] and line["rank"] == "slower than 1 of 1\xa0other" for line in regions)
    assert all(int(line["p50_beside"].split("%")[0].lstrip("+")) > 80 for line in regions)


def test_a_long_compilation_is_compared_with_the_usual_duration(
    signed_in: Client, made: Made
) -> None:
    compilations(made, "1")
    it = changed(
        one(made, "2", "gpu-h200-00"),
        compiling_for=240.0,
        compiling_frame="score_batch",
        compiling_usual=8.0,
    )
    text = shown(signed_in, made.url(f"instances/{it.instance_id}/"))
    assert "Stuck: compiling <code>score_batch</code> for 4 min" in text
    assert (
        "took 8 s at most before in this process; the current compilation is 30 times as long"
        in text
    )
    assert "The 4 known compilations of the frame took 4.1 s at the median" in text
    CompileEvent.objects.all().delete()
    assert "No finished compilation of the frame is known" in shown(
        signed_in, made.url(f"instances/{it.instance_id}/")
    )


def test_a_missing_heartbeat_is_shown_with_the_last_known_compilation(
    signed_in: Client, made: Made
) -> None:
    it = changed(
        one(made, "2", "gpu-h200-00"),
        last_seen_at=clock.now() - timedelta(seconds=400),
        compiling_for=50.0,
        compiling_frame="score_batch",
    )
    text = shown(signed_in, made.url(f"instances/{it.instance_id}/"))
    assert (
        "No report for 6 min 4" in text
        and "Last seen compiling <code>score_batch</code> for 50 s." in text
    )
    assert "has not compiled the frame before" in text
    changed(it, compiling_for=0.0)
    assert "No compilation was in progress at the last report" in shown(
        signed_in, made.url(f"instances/{it.instance_id}/")
    )


def test_an_unchanged_part_is_not_sent_again(signed_in: Client, made: Made) -> None:
    address = made.url("instances/?range=24h&show=eager")
    etag = signed_in.get(address, HTTP_HX_REQUEST="true")["ETag"]
    assert (
        signed_in.get(address, HTTP_HX_REQUEST="true", HTTP_IF_NONE_MATCH=etag).status_code == 304
    )


def test_pages_of_other_projects_are_not_found(
    signed_in: Client, made: Made, other_project: Project
) -> None:
    theirs = charted(other_project, Plan("1", start=30, per_gpu=1))
    it, other = (
        one(made, "1", "gpu-h200-00"),
        Instance.objects.filter(version=theirs.versions["1"]).first(),
    )
    assert other is not None
    assert signed_in.get(made.url(f"instances/{other.instance_id}/")).status_code == 404
    assert signed_in.get(made.url("instances/nobody/")).status_code == 404
    assert signed_in.get(f"/p/ranking/models/{theirs.model.pk}/instances/").status_code == 404
    assert made.url(f"instances/{it.instance_id}/") in shown(signed_in, made.url("instances/"))
    assert f'href="{made.url("instances/")}"' in shown(signed_in, made.url())


def test_instances_of_a_slower_version_are_above_its_baseline(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", p50=0.010, start=60), Plan("2", p50=0.015, start=30))
    told = signed_in.get(made.url("instances.json?range=1h")).json()["instances"]
    by_version: dict[str, list[float]] = {"1": [], "2": []}
    for row in told:
        by_version[row["version"]] += [value for value in row["p50"].values() if value is not None]
    assert min(by_version["2"]) > 1.3
    assert max(by_version["1"]) < 1.2


def test_the_strips_show_the_metric_that_drives_the_verdict(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    verdict = Verdict.objects.get()
    rows = [row for row in verdict.evidence["evidence"] if row["metric"] == "eager"]
    Verdict.objects.update(evidence={"evidence": rows})
    assert signed_in.get(made.url("instances/")).context["page"].measure.key == "eager"


def test_clock_skew_late_reports_and_losses_are_shown_only_if_there_are_some(
    signed_in: Client, made: Made
) -> None:
    before = shown(signed_in, made.url("instances/"))
    assert "windows late" not in before and "clock " not in before.split("<table")[1]
    Instance.objects.filter(version=made.versions["1"]).update(late_windows=3)
    assert "3 windows late" in shown(signed_in, made.url("instances/"))
