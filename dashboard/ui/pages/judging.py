"""What the Judging page says: every setting with its default, unit and effect, where its value comes from, and what was changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.accounts.models import AuditEntry
from dashboard.regressions.judge.settings import PRODUCTION, Ratio
from dashboard.regressions.judge.settings_overrides import (
    ENOUGH_PAIRS,
    TITLES,
    OverrideError,
    Setting,
    Value,
    overrides_checked,
    settable,
)
from dashboard.ui import words
from dashboard.ui.charts.evidence_table import TITLES as METRICS
from dashboard.ui.selectors.judging import JudgingFacts, changed_names


@dataclass(frozen=True)
class Row:
    """One setting: `given` is what stands in the field, empty for what the layer below says."""

    setting: Setting
    label: str
    given: str
    below: str
    below_from: str
    default: str
    error: str = ""

    @property
    def id(self) -> str:
        """The field's id on the page."""
        return f"s-{self.setting.name.replace('.', '-')}"

    @property
    def changed(self) -> bool:
        """Whether this layer decides it."""
        return bool(self.given)

    @property
    def choice(self) -> bool:
        """Whether it is chosen and not written."""
        return isinstance(self.setting.default, bool)


@dataclass(frozen=True)
class Group:
    """The settings of one metric, or of all."""

    key: str
    title: str
    detail: str
    rows: list[Row]

    @property
    def changed(self) -> list[str]:
        """What is set differently on this layer, in words."""
        return [f"{inside(row.label)} {row.given}{unit_of(row.setting)}" for row in self.rows if row.changed and row.given != "yes"]

    @property
    def told(self) -> str:
        """What is in force, on one line."""
        numbers = [row for row in self.rows if not row.choice]
        return ", ".join(f"{inside(row.label)} {row.given or row.below}{unit_of(row.setting)}" for row in numbers)

    @property
    def muted(self) -> bool:
        """Whether the metric is only shown, whichever layer says so."""
        return any(row.setting.key == "muted" and (row.given or row.below) == "yes" for row in self.rows)

    @property
    def open(self) -> bool:
        """Whether the page shows its fields at once."""
        return not self.key or any(row.changed or row.error for row in self.rows)


@dataclass(frozen=True)
class LearnedRow:
    """What was learned about one metric beside what is assumed before."""

    metric: str
    pairs: int
    in_force: bool
    spread: str
    assumed: str
    day: str


@dataclass(frozen=True)
class Change:
    """One line of the record."""

    at: datetime
    by: str
    where: str
    said: list[str]


@dataclass
class JudgingPage:
    """Everything the template shows."""

    facts: JudgingFacts
    groups: list[Group]
    learned: list[LearnedRow]
    changes: list[Change]
    enough: int = ENOUGH_PAIRS
    error: str = ""


@dataclass
class Given:
    """What a form holds: the values that can be, and a sentence for each that cannot."""

    texts: dict[str, str]
    values: dict[str, Value] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def given_read(posted: Mapping[str, str], facts: JudgingFacts) -> Given:
    """Reads every field; an empty one is left to the layer below."""
    names = settable()
    given = Given({name: posted.get(name, "").strip()[:40] for name in names})
    for name, text in given.texts.items():
        if text:
            try:
                given.values[name] = names[name].read(text)
            except OverrideError as error:
                given.errors[name] = str(error)
    if not given.errors:
        try:
            overrides_checked(given.values, facts.of_project)
        except OverrideError as error:
            given.errors[error.name] = str(error)
    return given


def judging_page(facts: JudgingFacts, given: Given | None = None) -> JudgingPage:
    """Puts the page together; `given` is a form that was not taken."""
    names = settable()
    texts = given.texts if given else {name: names[name].said(value) for name, value in facts.own.items()}
    errors = given.errors if given else {}
    rows = [_row(setting, facts, texts.get(name, ""), errors.get(name, "")) for name, setting in names.items()]
    keys = dict.fromkeys(row.setting.metric for row in rows)
    groups = [Group(key, *_titled(key), [row for row in rows if row.setting.metric == key]) for key in keys]
    changes = [_change(entry) for entry in facts.changes]
    return JudgingPage(facts, groups, _learned(facts), changes, error=next(iter(errors.values()), ""))


def _row(setting: Setting, facts: JudgingFacts, text: str, error: str) -> Row:
    of_project = facts.of_project.get(setting.name)
    return Row(
        setting=setting,
        label=TITLES.get(setting.key, setting.title),
        given=text,
        below=setting.said(setting.default if of_project is None else of_project),
        below_from="default" if of_project is None else "project",
        default=setting.said(setting.default),
        error=error,
    )


def _titled(key: str) -> tuple[str, str]:
    if not key:
        return "All metrics", "how sure a verdict has to be"
    title, detail = METRICS.get(key, (key.replace("_", " ").capitalize(), ""))
    stand_ins = any(isinstance(metric, Ratio) and metric.instead_of == key for metric in PRODUCTION.metrics)
    return title, "wall time, or GPU time where calls return before the GPU is done" if stand_ins else detail


def inside(label: str) -> str:
    """A label within a sentence; ROLL BACK and WATCH keep their capitals."""
    return label[:1].lower() + label[1:]


def unit_of(setting: Setting) -> str:
    """What stands after a value."""
    return "" if setting.unit == "yes or no" else f"{words.SPACE}{setting.unit}"


def _learned(facts: JudgingFacts) -> list[LearnedRow]:
    found = []
    for metric in (*PRODUCTION.metrics, *PRODUCTION.process_metrics):
        learned, prior = facts.learned.get(metric.name), getattr(metric, "prior_variance", None)
        if learned is None:
            continue
        spread = ", ".join(f"{words.percent(variance**0.5)} after {words.coarse(at * 60)}" for at, variance in _some(learned.variance))
        assumed = prior[0][1] ** 0.5 if prior else getattr(metric, "dispersion", None)
        if not prior and learned.dispersion is not None:
            spread = f"{words.percent(learned.dispersion)} beyond chance"
        title, detail = METRICS.get(metric.name, (metric.name.replace("_", " "), ""))
        found.append(
            LearnedRow(
                metric=f"{title}, {detail}" if detail else title,
                pairs=learned.pairs,
                in_force=learned.pairs >= ENOUGH_PAIRS,
                spread=spread or "not seen yet",
                assumed=words.percent(assumed) if assumed is not None else "nothing",
                day=words.percent(learned.day_variance**0.5) if learned.day_variance is not None else "",
            )
        )
    return found


def _some(points: tuple[tuple[int, float], ...]) -> list[tuple[int, float]]:
    """The first, the middle and the last point."""
    return [points[at] for at in sorted({0, len(points) // 2, len(points) - 1})] if points else []


def _change(entry: AuditEntry) -> Change:
    names = settable()
    said = []
    for name, before, after in changed_names(entry):
        setting = names.get(name)
        if setting is None:
            said.append(f"{name}: {before} to {after}")
            continue
        was, now = ("not set" if value is None else f"{setting.said(value)}{unit_of(setting)}" for value in (before, after))
        said.append(f"{setting.title}: {was} to {now}")
    of_model = isinstance(entry.after, dict) and "model" in entry.after
    return Change(entry.at, entry.actor_name, f"for {entry.subject}" if of_model else "for all models", said)
