"""One regression, processed and evaluated as in production: ten places show the same values,
change, interval, unit and window.

Pages are read through the text of their elements; files, the API and /metrics through their
numbers, which the shared formatter turns into the text of the pages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Any, NamedTuple

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from dashboard.alerts.models import Alert
from dashboard.alerts.services import alerts_sync, channel_create, deliveries_send
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.projects.models import Project
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.vocabulary import numbers
from tests.dashboard.alerts.conftest import slack
from tests.dashboard.alerts.slack_server import StandIn
from tests.dashboard.api.reading import read
from tests.dashboard.regressions.conftest import Clock, send, side_by_side, time_is

__all__ = ["send", "side_by_side", "slack", "time_is"]


class ShownMetric(NamedTuple):
    """A metric as one place shows it; a part that the place does not show is empty."""

    baseline: str
    candidate: str
    change: str
    interval: str = ""
    window: str = ""


class StoredVerdict(NamedTuple):
    """The stored verdict and the address of its project."""

    verdict: Verdict
    alert: Alert
    root: str

    def address(self, page: str) -> str:
        """The address of a page, with the version and the model filled in."""
        one = self.verdict.deployment
        return self.root + page.format(
            model=one.model_id, version=one.version_id, alert=self.alert.number
        )


@pytest.fixture
def judged(
    project: Project,
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    slack: StandIn,
    time_is: Clock,
) -> StoredVerdict:
    """A version that is slower and partly eager; its alert is open and its notification sent."""
    channel_create(
        project=project, kind="slack", name="#ranking", address=slack.url, actor_name="tests"
    )
    for instance in side_by_side:
        send(instance)
    deployments_judge()
    alerts_sync()
    time_is.minute += 1
    deliveries_send()
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    return StoredVerdict(verdict, Alert.objects.get(), f"/p/{project.slug}/")


def texts(html: str) -> str:
    """The text between the tags, separated by `|`, with hard spaces replaced by spaces."""
    body = re.sub(r"<(script|style|template)\b.*?</\1>", "", html, flags=re.S)
    parts = (" ".join(unescape(part).split()) for part in re.split(r"<[^>]+>", body))
    return "|".join(part for part in parts if part)


def stored(judged: StoredVerdict, metric: str) -> ShownMetric:
    """The row that the judge stored, in the words of the formatter: all places are compared with
    it."""
    row = next(row for row in judged.verdict.evidence["evidence"] if row["metric"] == metric)
    minutes = f"{row['window_minutes'] or row['matched_minutes']} min"
    return format_row(
        row,
        row["change"],
        row["low"],
        row["high"],
        f"{'last' if row['unit'] == 'share' else 'matched'} {minutes}",
    )


def format_row(row: dict[str, Any], change: Any, low: Any, high: Any, window: str) -> ShownMetric:
    """The numbers of a file or of the API as the pages show them; the change is computed from the
    two values."""
    before, after, unit = float(row["baseline"]), float(row["candidate"]), row["unit"]
    if change not in (None, ""):
        assert float(change) == pytest.approx(after / before - 1, rel=1e-6), (
            "the change is that of the two values"
        )
    interval = numbers.change_range(float(low), float(high)) if low not in (None, "") else ""
    found = (
        numbers.level(before, unit),
        numbers.level(after, unit),
        numbers.difference(after, before, unit),
        interval,
        window,
    )
    return ShownMetric(*(part.replace("\u00a0", " ") for part in found))


VALUE = r"([\d,.]+(?: ms| s|%))"


def on_fleet(page: str, metric: str) -> ShownMetric:
    """`|+30%|19 → 24.7 ms|+31%|26.5 → 34.6 ms|`: p50, then p99; the window is below."""
    cell = rf"\|(\S+%)\|([\d,.]+) → {VALUE}"
    found = re.search(rf"\|Share of calls: [^|]+{cell}{cell}\|.*?\|(matched \d+ min)", page)
    assert found, page
    change, before, after = found.groups()[:3] if metric == "p50" else found.groups()[3:6]
    return ShownMetric(f"{before} {after.split()[-1]}", after, change, window=found[7])


def on_model(page: str, metric: str) -> ShownMetric:
    """The head of a large chart: the metric, its change, its two values and their window."""
    title = "Eager calls" if metric == "eager" else metric
    found = re.search(
        rf"\|{title}\|[^|]+\|REGRESSED\|[^→]*?\|Data table\|(\S+(?:%| pts))\|"
        rf"{VALUE} → {VALUE}\|((?:matched|last) \d+ min)",
        page,
    )
    assert found, page
    return ShownMetric(found[2], found[3], found[1], window=found[4])


def on_compare(page: str, metric: str) -> ShownMetric:
    """A row of the evidence table."""
    title = {"eager": r"Eager calls\|share of calls"}.get(metric, rf"{metric}\|wall time")
    found = re.search(
        rf"\|{title}\|((?:matched|last) \d+ min)[^|]*\|{VALUE}\|{VALUE}\|(\S+(?:%| pts))\|([^|]+)\|",
        page,
    )
    assert found, page
    interval = found[5] if " to " in found[5] else ""
    return ShownMetric(found[2], found[3], found[4], interval, found[1])


def on_alert(page: str, metric: str) -> ShownMetric:
    """A row of the evidence."""
    title = {"eager": "Eager calls"}.get(metric, metric)
    found = re.search(
        rf"\|{title}\|[^|]+\|((?:matched|last) \d+ min)\|(?:[^|]+\|)?(\S+(?:%| pts))\|"
        rf"{VALUE} → {VALUE}\|(?:excluded[^|]*\|)?([^|]+)\|",
        page,
    )
    assert found, page
    return ShownMetric(
        found[3], found[4], found[2], found[5] if " to " in found[5] else "", found[1]
    )


def in_message(text: str, metric: str) -> ShownMetric:
    """A line of the evidence in Slack."""
    if metric == "eager":
        found = re.match(
            rf"Eager calls, \S+: \S+ of \S+ calls \({VALUE}\), before: 0 of \S+ \({VALUE}\), "
            r"(last \d+ min);",
            text,
        )
        assert found, text
        return ShownMetric(found[2], found[1], "", window=found[3])
    found = re.match(
        rf"{metric}, \S+: (\S+%) \(([^)]+)\), {VALUE} to {VALUE}, (matched \d+ min);", text
    )
    assert found, text
    return ShownMetric(found[3], found[4], found[1], found[2], found[5])


def assert_equal_where_shown(place: ShownMetric, known: ShownMetric) -> None:
    """Each part that the place shows is equal to the known part."""
    for part, shown in place._asdict().items():
        assert not shown or shown == getattr(known, part), (part, place, known)


PAGES = {
    "Fleet": ("", on_fleet, ("p50", "p99")),
    "Model": ("models/{model}/", on_model, ("p50", "eager")),
    "Compare": ("models/{model}/compare", on_compare, ("p50", "p99", "eager")),
    "Alert": ("alerts/{alert}/", on_alert, ("p50", "p99", "eager")),
}


@pytest.mark.parametrize("name", PAGES)
def test_pages_show_the_values_that_the_judge_stored(
    name: str, judged: StoredVerdict, signed_in: Client
) -> None:
    address, reader, metrics = PAGES[name]
    page = texts(signed_in.get(judged.address(address)).content.decode())
    for metric in metrics:
        assert_equal_where_shown(reader(page, metric), stored(judged, metric))


def test_every_page_and_the_notification_have_the_same_sentence(
    judged: StoredVerdict, signed_in: Client, slack: StandIn
) -> None:
    p50, eager = (stored(judged, metric) for metric in ("p50", "eager"))
    assert (
        f"p50 call time is {p50.change.lstrip('+')} slower ({p50.interval}, limit 5%)"
        in judged.verdict.sentence.replace("\u00a0", " ")
    )
    assert f"calls ({eager.candidate}) run eager" in judged.verdict.sentence.replace("\u00a0", " ")
    title = f"ranker 2026.11.3: p50 {p50.change.lstrip('+')} slower, {eager.candidate} of calls run eager"
    assert judged.alert.title.replace("\u00a0", " ") == title
    said = judged.verdict.sentence.replace("\u00a0", " ").split(" than ")[0]
    for address in (
        "",
        "models/{model}/",
        "alerts/{alert}/",
    ):
        assert said in texts(signed_in.get(judged.address(address)).content.decode()), address
    assert said in str(slack.messages[-1]).replace("\\xa0", " ")


def test_notifications_show_the_values_that_the_judge_stored(
    judged: StoredVerdict, slack: StandIn
) -> None:
    fields = [
        field["text"].replace("\u00a0", " ")
        for block in slack.messages[-1]["blocks"]
        for field in block.get("fields", ())
    ]
    for metric, begins in (("eager", "Eager calls"), ("p50", "p50,"), ("p99", "p99,")):
        assert_equal_where_shown(
            in_message(next(text for text in fields if text.startswith(begins)), metric),
            stored(judged, metric),
        )


def changes_in_files(
    judged: StoredVerdict, client: Client, key: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Rows of changes from the JSON and CSV files and the API."""
    for row in client.get(judged.address("models/{model}/compare.json")).json()["rows"]:
        yield "compare.json", row
    for row in csv.DictReader(
        io.StringIO(client.get(judged.address("models/{model}/compare.csv")).content.decode())
    ):
        yield "compare.csv", row
    for row in client.get(judged.address("fleet.json")).json()["models"][0]["changes"]:
        yield "fleet.json", row
    for row in read(Client(), f"/api/v1/projects/ranking/verdicts/{judged.verdict.pk}", key=key)[
        "evidence"
    ]:
        yield "api", row


def test_files_and_the_api_have_the_numbers_of_the_pages(
    judged: StoredVerdict, signed_in: Client, api_key: str
) -> None:
    compared = []
    for place, row in changes_in_files(judged, signed_in, api_key):
        if row["metric"] in ("p50", "p99", "eager"):
            known = stored(judged, row["metric"])
            names = (
                ("change", "low", "high")
                if place == "api"
                else ("change_ratio", "change_low_ratio", "change_high_ratio")
            )
            change, low, high = (row[name] for name in names)
            window = f"{row['window']} {row['minutes' if place == 'api' else 'window_minutes']} min"
            assert format_row(row, change, low, high, window) == known, place
            compared.append((place, row["metric"]))
    assert len(compared) == 12
    [fleet] = csv.DictReader(
        io.StringIO(signed_in.get(judged.address("fleet.csv")).content.decode())
    )
    for metric in ("p50", "p99"):
        row = {
            name: fleet[f"{metric}_judged_{name}_seconds"] for name in ("baseline", "candidate")
        } | {"unit": "s"}
        change, low, high = (
            fleet[f"{metric}_judged_{name}_ratio"]
            for name in ("change", "change_low", "change_high")
        )
        assert format_row(
            row, change, low, high, f"matched {fleet[f'{metric}_judged_window_minutes']} min"
        ) == stored(judged, metric)


def test_the_latest_values_of_the_files_of_the_fleet_and_the_metrics_are_equal(
    judged: StoredVerdict, signed_in: Client, api_key: str
) -> None:
    [model] = signed_in.get(judged.address("fleet.json")).json()["models"]
    answer = (
        Client().get("/metrics", headers={"authorization": f"Bearer {api_key}"}).content.decode()
    )
    families = {family.name: family for family in text_string_to_metric_families(answer)}
    latency = families["compilewatch_version_latency_seconds"]
    assert "15 minutes" in latency.documentation
    for metric, quantile in (("p50", "0.5"), ("p99", "0.99")):
        [value] = [
            one.value
            for one in latency.samples
            if one.labels["version"] == "2026.11.3" and one.labels["quantile"] == quantile
        ]
        assert value == model[f"{metric}_seconds"]
