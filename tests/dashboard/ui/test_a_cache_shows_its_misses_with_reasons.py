"""The card of the compile caches: hits and misses by count and seconds, and the cause of each miss,
reported by the agent or found by comparison."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from compilewatch.wire.cache_miss_causes import (
    ACCESS,
    LACKING_FOLDER,
    NO_EARLIER_RUN,
    UNWRITABLE_FOLDER,
)
from compilewatch.wire.messages import Compile, Finding, Report, Request
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, FindingVersion, Instance, ModelVersion, WatchedModel
from dashboard.fleet.selectors.compilations.cache_miss_causes import (
    SAME_CONFIGURATION,
)
from dashboard.projects.models import Project
from dashboard.ui.pages.compiles.cache_misses import misses_card
from dashboard.ui.pages.version.queries import read_version_data

HIT, MISS = {"fx": "hit", "aot": "hit"}, {"fx": "miss", "aot": "miss"}
CONFIGURED = {
    "torch": "2.13.0",
    "env TORCHINDUCTOR_FREEZING": "0a1b2c3d",
    "cache folder": "deadbeef",
    "cache folder access": "read and write",
}
UNKNOWN = {"cache": MISS, "miss": NO_EARLIER_RUN}
MakeRequest = Callable[..., Request]


@pytest.fixture
def start(make_request: MakeRequest, store_reports: Callable[..., object]) -> Callable[..., None]:
    """`start(number, compiles)` sends the first report of an instance that started `number` minutes
    after the first instance."""
    minute = clock.unix() // 60 * 60

    def start(
        number: int,
        *compiles: dict[str, Any],
        components: dict[str, str] | None = None,
        **identity: Any,
    ) -> None:
        end = minute - 60 * (10 - number)

        def change(report: Report) -> None:
            report.compiles = [
                compiled(end - 30 + place, **fields) for place, fields in enumerate(compiles)
            ]
            report.findings = [
                Finding(
                    "cache_miss", one.miss, f"ranker.py:7 in {one.frame}", 1, one.seconds["total"]
                )
                for one in report.compiles
                if one.miss and one.miss != NO_EARLIER_RUN
            ]

        given = {
            "components": CONFIGURED if components is None else components,
            "host": f"gpu-{number:02d}",
            **identity,
        }
        store_reports(make_request(instance=number, end=end, change=change, **given))
        fold_all()

    return start


def compiled(at: float, *, seconds: float = 4.0, key: str = "ak1", **fields: Any) -> Compile:
    return Compile(
        at,
        "0/0",
        "first",
        "ok",
        frame="score",
        file="ranker.py",
        line=7,
        seconds={"total": seconds},
        key=key,
        **fields,
    )


def address_of() -> str:
    return f"/p/ranking/models/{WatchedModel.objects.get().pk}/compiles/"


def page(client: Client, query: str = "") -> str:
    answer = client.get(address_of() + query)
    assert answer.status_code == 200
    return " ".join(unescape(answer.content.decode()).replace("\u00a0", " ").split())


def part(text: str, name: str) -> str:
    return text.split(f'aria-labelledby="{name}"')[1].split("</section>")[0]


def cause_of(number: int) -> tuple[str, str]:
    """The cause that the comparison finds for an instance, and the instance it was compared
    with."""
    instance = Instance.objects.get(instance_id__endswith=str(number))
    data, _ = read_version_data(
        model=instance.model, deployment=Deployment.objects.get(), baseline=None
    )
    own = [one for one in data.own if one.id == instance.pk]
    (row,) = misses_card(own, data.processes, data.answers).rows
    return row.newest.cause, row.newest.against


def test_each_cache_counts_its_answers_and_their_seconds(
    start: Callable[..., None], signed_in: Client
) -> None:
    start(
        1,
        {"cache": {**HIT, "mega": "hit"}, "seconds": 1.5, "saved": 40.0},
        {
            "cache": {"fx": "miss", "aot": "miss", "autotune": "miss", "bundle": "miss"},
            "seconds": 8.5,
            "miss": "graph",
        },
        {"cache": {"fx": "bypass", "aot": "bypass"}, "seconds": 3.0},
        {"cache": {"fx": "hit", "aot": "bypass"}, "seconds": 2.0},
    )
    text = page(signed_in)
    rows = part(text, "caches")
    cells = {
        "FX graph": (
            "2<span",
            "3.5 s",
            "1<span",
            "8.5 s",
            "1<span",
            "3 s",
            "66.7%",
            "29.2% by time",
        ),
        "AOTAutograd": (
            "1<span",
            "1.5 s",
            "1<span",
            "8.5 s",
            "2<span",
            "5 s",
            "50%",
            "15% by time",
        ),
        "Autotune": ("0</td>", "1<span", "8.5 s", "0%"),
        "Triton bundle": ("0</td>", "1<span", "8.5 s", "0%"),
        "Mega-cache": ("1<span", "1.5 s", "0</td>", "100%"),
    }
    for name, wanted in cells.items():
        row = rows[rows.index(f">{name}<") :].split("</tr>")[0]
        for cell in wanted:
            assert cell in row, (name, cell, row)
    assert "FX miss, AOT miss, autotune miss, Triton bundle miss" in text
    assert "FX hit, AOT hit, mega-cache hit" in text


def test_a_version_without_cache_lookups_states_this(
    start: Callable[..., None], signed_in: Client
) -> None:
    start(1, {"cache": {}})
    assert "No cache lookups" in part(page(signed_in), "caches")


def test_the_cause_from_the_agent_is_on_the_card_in_the_list_and_in_the_findings(
    start: Callable[..., None], signed_in: Client
) -> None:
    start(1, {"cache": MISS, "miss": "env TORCHINDUCTOR_FREEZING", "seconds": 6.0}, {"cache": HIT})
    start(2, {"cache": MISS, "miss": "env TORCHINDUCTOR_FREEZING", "seconds": 5.0})
    text = page(signed_in)
    card = part(text, "misses")
    assert '<code class="wrap">env TORCHINDUCTOR_FREEZING</code>' in card
    assert "2 compilations" in card and ">11 s<" in card
    assert part(text, "longest").count("env TORCHINDUCTOR_FREEZING") == 2, "two rows of the list"
    findings = signed_in.get(address_of().replace("compiles", "findings")).content.decode()
    assert "env TORCHINDUCTOR_FREEZING" in findings
    assert FindingVersion.objects.get().seconds == pytest.approx(11.0)


def test_an_instance_on_a_new_host_is_compared_with_the_last_warm_instance(
    start: Callable[..., None], signed_in: Client
) -> None:
    start(1, {"cache": HIT}, {"cache": HIT, "key": "ak2"})
    start(2, {"cache": MISS, "miss": "graph"})
    start(
        3,
        {**UNKNOWN, "key": "other"},
        components={**CONFIGURED, "torch": "2.14.0", "env TORCHINDUCTOR_FREEZING": "ffffffff"},
    )
    assert cause_of(3) == ("torch 2.13.0 -> 2.14.0", "gpu-01 / rank 0")
    text = page(signed_in)
    card = part(text, "misses")
    assert '<code class="wrap">torch 2.13.0 -> 2.14.0</code>' in card
    assert "compared with <bdi>gpu-01 / rank 0</bdi>" in card and "none was warm" not in card
    assert "torch 2.13.0 -> 2.14.0, compared with gpu-01 / rank 0" in text, (
        "in the list of compilations"
    )
    assert f">{NO_EARLIER_RUN}<" not in text


def test_a_miss_of_a_known_key_is_attributed_to_the_cache_folder(
    start: Callable[..., None],
) -> None:
    start(1, {"cache": HIT})
    start(2, UNKNOWN, components={**CONFIGURED, "env TORCHINDUCTOR_FREEZING": "ffffffff"})
    assert cause_of(2)[0] == "cache folder is new or was emptied"
    start(3, UNKNOWN, components={**CONFIGURED, "cache folder": "c0ffee00"})
    assert cause_of(3)[0] == "cache folder: another one than before"


@pytest.mark.parametrize(
    ("access", "cause", "brought"),
    [
        (
            {"cache folder access": "read-only"},
            UNWRITABLE_FOLDER,
            "a folder that may not be written on gpu-02",
        ),
        ({}, LACKING_FOLDER, "a folder without it on gpu-02"),
    ],
    ids=["read-only", "an older agent, which does not report the access mode"],
)
def test_a_folder_that_may_be_read_only_is_not_reported_as_emptied(
    start: Callable[..., None], signed_in: Client, access: dict[str, str], cause: str, brought: str
) -> None:
    start(1, {"cache": HIT})
    start(
        2,
        UNKNOWN,
        components={
            **{name: told for name, told in CONFIGURED.items() if name != ACCESS},
            **access,
        },
    )
    assert cause_of(2) == (cause, "gpu-01 / rank 0")
    version = ModelVersion.objects.get()
    (row,) = signed_in.get(
        f"/p/ranking/models/{version.model_id}/versions/{version.pk}.json"
    ).json()["misses"]
    assert (row["cause"], row["brought_by"]) == (cause, brought)
    assert "emptied</code>" not in page(signed_in)


def test_without_a_difference_the_cause_is_the_graph_or_unknown(start: Callable[..., None]) -> None:
    start(1, {"cache": HIT})
    start(2, {**UNKNOWN, "key": "other"})
    assert cause_of(2)[0] == SAME_CONFIGURATION
    start(3, {**UNKNOWN, "key": ""})
    assert cause_of(3)[0] == "nothing that we can see differs"


def test_instances_are_compared_within_one_gpu_type_and_one_rank(
    start: Callable[..., None],
) -> None:
    start(1, {"cache": HIT, "key": "rank0"}, rank=0)
    start(2, {"cache": HIT, "key": "rank1"}, rank=1, host="gpu-02")
    start(3, {**UNKNOWN, "key": "rank0"}, gpu="NVIDIA H100")
    assert cause_of(3) == (NO_EARLIER_RUN, "")
    start(4, {**UNKNOWN, "key": "rank0"}, rank=0)
    assert cause_of(4) == ("cache folder is new or was emptied", "gpu-01 / rank 0")


def test_without_a_warm_instance_the_comparison_uses_and_names_the_last_compiled_one(
    start: Callable[..., None], signed_in: Client
) -> None:
    start(1, UNKNOWN)
    start(2, UNKNOWN)
    text = page(signed_in)
    card = part(text, "misses")
    assert "compared with <bdi>gpu-01 / rank 0</bdi>; no earlier start was warm" in card
    assert '<code class="wrap">cache folder is new or was emptied</code>' in card
    assert f'<code class="wrap">{NO_EARLIER_RUN}</code>' in card, (
        "the very first one has nothing to be compared with"
    )


def test_the_number_of_queries_does_not_grow_with_the_instances(
    start: Callable[..., None], signed_in: Client, project: Project
) -> None:
    start(1, {"cache": HIT})
    start(2, UNKNOWN)
    with CaptureQueriesContext(connection) as few:
        page(signed_in)
    for number in range(3, 9):
        start(number, UNKNOWN, {**UNKNOWN, "key": "other"})
    with CaptureQueriesContext(connection) as many:
        page(signed_in)
    assert len(many) == len(few)
