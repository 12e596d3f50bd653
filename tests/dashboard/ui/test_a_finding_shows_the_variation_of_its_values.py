"""A finding shows the values that failed a guard, their number and their pattern, with the remedy
for the pattern."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import PATTERNS, Finding
from django.test import Client

from dashboard.fleet.models import Finding as StoredFinding
from dashboard.projects.models import Project
from dashboard.ui.charts.guard_variation import REMEDIES, build_variation
from tests.dashboard.api.reading import read
from tests.dashboard.ui.version_story import Story, shown

CLASSES = "___check_type_id(L['self'].block, *)"
NAMES = [f"Block{letter}" for letter in "ABCDEFGH"]


@pytest.mark.parametrize(
    ("values", "distinct", "pattern", "text", "words", "remedy"),
    [
        (
            NAMES,
            12,
            "distinct values",
            CLASSES,
            "12 classes, all different: BlockA, BlockB, BlockC …",
            "recompile_limit to at least 12",
        ),
        (
            ["8", "16"],
            2,
            "alternates",
            "n == *",
            "alternates between 2 values: 8, 16",
            "once per value",
        ),
        (
            ["10", "9", "11"],
            40,
            "grows by one",
            "L['step'] == *",
            "grows by one at each call: 9, 10, 11 …",
            "A counter is compiled in",
        ),
        (["3"], 1, "one value", "n == *", "1 value: 3", "changed once"),
        (
            ["#"],
            5,
            "distinct values",
            "L['n'] == *",
            "5 values, all different: # …",
            "one compilation serves all",
        ),
        (["torch.float16"], 2, "", "tensor 'x' dtype mismatch", "2 dtypes: torch.float16 …", ""),
        ([], 6, "", "len(L['items']) == *", "6 lengths", ""),
        ([], 0, "", "x.size(0) == 8", "", ""),
    ],
)
def test_the_pattern_is_described_in_words(
    values: list[str], distinct: int, pattern: str, text: str, words: str, remedy: str
) -> None:
    found = build_variation(values, distinct, pattern, text)
    assert found.words == words
    assert remedy in found.remedy and bool(remedy) == bool(found.remedy)


def test_every_pattern_of_the_wire_format_has_a_remedy() -> None:
    assert (
        {pattern for pattern in PATTERNS if build_variation(["1"], 2, pattern, "n == *").remedy}
        == set(PATTERNS)
        >= set(REMEDIES)
    )
    assert build_variation(["1", "2"], 2, "a newer one", "n == *").words == "2 values: 1, 2", (
        "a newer agent's pattern is left out"
    )


@pytest.mark.django_db
def test_pages_files_and_the_api_show_them(
    store_reports: Callable[..., object], signed_in: Client, project: Project
) -> None:
    story = Story(store_reports)
    guard_findings = [
        Finding(
            "guard",
            CLASSES,
            "ranker/score.py:118 in forward",
            values=NAMES,
            distinct=12,
            pattern="distinct values",
        ),
        Finding("guard", "x.size(0) == *", "ranker/score.py:9 in f"),
    ]
    story.start("1", ago=20, findings=guard_findings)
    story.fold()
    one = StoredFinding.objects.get(text=CLASSES)
    address, words = (
        f"/p/{project.slug}/findings/",
        "12 classes, all different: BlockA, BlockB, BlockC …",
    )
    listed = signed_in.get(address).content.decode()
    assert (
        listed.count("all different") == 1
        and words in listed
        and "recompile_limit to at least 12" in listed
    )
    detail = signed_in.get(f"{address}{one.pk}/").content.decode()
    assert (
        f"12 classes, all different: {', '.join(NAMES)} …</p>" in detail
        and "recompile_limit to at least 12" in detail
    )
    assert "No suggestion" not in detail
    data = signed_in.get(f"{address}{one.pk}.json").json()
    assert (data["values"], data["distinct"], data["pattern"]) == (NAMES, 12, "distinct values")
    assert (
        f"12 classes, all different: {', '.join(NAMES)} …"
        in signed_in.get(f"/p/{project.slug}/findings.csv").content.decode()
    )
    assert words in shown(signed_in, project, "1", tabs=["findings"])
    items = read(signed_in, f"/api/v1/projects/{project.slug}/models/{one.model_id}/findings")[
        "items"
    ]
    assert {
        item["text"]: (item["values"], item["distinct"], item["pattern"]) for item in items
    } == {
        CLASSES: (NAMES, 12, "distinct values"),
        "x.size(0) == *": ([], 0, ""),
    }
