"""The Startup tab shows a start stage by stage, and the Compiles tab the memory of a version."""

from __future__ import annotations

from html import unescape
from typing import Any

from compilewatch.wire.messages import COLD_START_STAGES
from django.test import Client

from dashboard.fleet.models import ColdStart, VersionProcessHour, VersionProcessMinute
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import Made, Plan, charted

STAGES = [
    ["before init", 0.0, 0.5],
    ["import torch", 0.5, 2.5],
    ["weights <b>loaded", 3.0, 1.0],
    ["compile", 5.0, 7.5],
]


def text_of(client: Client, made: Made, tab: str = "startup") -> str:
    answer = client.get(made.url(f"{tab}/"))
    assert answer.status_code == 200
    return answer.content.decode().replace("\u00a0", " ").replace("&nbsp;", " ")


def start(made: Made, **fields: Any) -> None:
    ColdStart.objects.filter(project=made.project).delete()
    instance = made.versions["1"].instances.order_by("-pk").first()
    assert instance is not None
    ColdStart.objects.create(
        instance=instance,
        project=made.project,
        version=instance.version,
        started_at=instance.started_at,
        **fields,
    )


def test_a_start_is_shown_with_every_stage_and_the_unaccounted_time(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    phases = {
        "marks": {},
        "until": "ready",
        "stages": STAGES,
        "phases": {"inductor": 5.0, "dynamo": 2.0, "gc": 0.001},
    }
    start(made, total=12.5, unaccounted=1.0, phases=phases)
    text = text_of(signed_in, made)
    for words in (
        "Import of torch",
        "Process start to init",
        "Inductor",
        "Dynamo",
        "12.5 s",
        "until ready()",
        "Unaccounted",
    ):
        assert words in text, words
    card = unescape(text).split('id="start"')[1].split("</section>")[0]
    assert "weights &lt;b&gt;loaded" in text and "gc" not in card.split("Compilation is")[0]
    assert 'x="39.22%" width="39.22%"' in text, "Inductor begins at 5 s plus 2 s of Dynamo"


def test_a_stage_of_the_agent_is_not_a_mark_of_the_job(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=30))
    names = list(COLD_START_STAGES)
    stages = [[name, float(place), 1.0] for place, name in enumerate(names)]
    start(
        made,
        total=float(len(names)),
        unaccounted=0.0,
        phases={"marks": {}, "until": "first call", "stages": stages, "phases": {}},
    )
    section = text_of(signed_in, made).split('aria-labelledby="start"')[1].split("</section>")[0]
    assert "Import of the compiler" in section and "First compiled calls" in section
    assert ">mark<" not in section


def test_a_start_known_only_from_reports_has_two_stages(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    start(
        made,
        total=10.0,
        unaccounted=2.0,
        phases={"marks": {}, "before_compiling": 3.0, "compiling": 5.0},
    )
    text = text_of(signed_in, made)
    assert "Before the first compilation" in text and "until calls ran without compiling" in text


def test_a_version_whose_start_never_completed_shows_no_start(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    start(made, total=None, unaccounted=None, phases={"marks": {}})
    text = text_of(signed_in, made)
    assert "No known start" in text and "has reported a compiled call or readiness yet" in text


def test_memory_shows_known_values_and_a_dash_for_unknown_values(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    known = {
        "gpu_allocated": 30 << 30,
        "gpu_graph_pool": 94 << 20,
        "gpu_utilisation": 0.71,
        "host_rss_slope": 0.5 * (1 << 30),
        "ooms": 2,
    }
    VersionProcessMinute.objects.update(**known)
    VersionProcessHour.objects.update(**known)
    text = text_of(signed_in, made, "compiles")
    section = text.split('aria-labelledby="memory"')[1].split("</section>")[0]
    for words in ("30 GiB", "94 MiB", "71%", "+512 MiB/h", "times", "18.4 GiB"):
        assert words in section, (words, section)
    assert '<td class="r num" data-l="Compile workers">–</td>' in section
