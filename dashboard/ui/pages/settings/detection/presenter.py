"""Detection page: every setting with default, unit, effect and source of its value, and the change
history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from dashboard.accounts.models import AuditEntry
from dashboard.regressions.judge.settings import PRODUCTION, RatioMetric
from dashboard.regressions.judge.settings_overrides import (
    ENOUGH_PAIRS,
    TITLES,
    OverrideError,
    Setting,
    Value,
    check_overrides,
    list_settings,
)
from dashboard.regressions.judge.warm_up import LEAST_PROCESSES, LEAST_VERSIONS, LearnedWarmUp
from dashboard.ui.pages.settings.detection.queries import (
    DetectionData,
    ModelWarmUp,
    list_changed_settings,
)
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import METRICS, find_metric


@dataclass(frozen=True)
class SettingRow:
    """One setting; `given` is the text of the field, empty for the value of the layer below."""

    setting: Setting
    label: str
    given: str
    below: str
    below_from: str
    default: str
    error: str = ""
    learned: str = ""
    """The learned value with its source; empty if none is learned."""

    @property
    def id(self) -> str:
        """The id of the field."""
        return f"s-{self.setting.name.replace('.', '-')}"

    @property
    def changed(self) -> bool:
        """Whether this layer sets the value."""
        return bool(self.given)

    @property
    def suffix(self) -> str:
        """The unit after the default and the value of the project; empty for a choice."""
        return format_unit(self.setting)

    @property
    def choice(self) -> bool:
        """Whether the field is a list of choices."""
        return isinstance(self.setting.default, bool)


@dataclass(frozen=True)
class SettingGroup:
    """The settings of one metric, or of all metrics."""

    key: str
    title: str
    detail: str
    rows: list[SettingRow]

    @property
    def changed(self) -> list[str]:
        """The values that this layer sets, as text."""
        return [
            f"{lower_label(row.label)} {row.given}{format_unit(row.setting)}"
            for row in self.rows
            if row.changed and row.given != "yes"
        ]

    @property
    def told(self) -> str:
        """The effective values on one line."""
        valued = [row for row in self.rows if not row.choice]
        return ", ".join(
            f"{lower_label(row.label)} {row.given or row.below}{format_unit(row.setting)}"
            for row in valued
        )

    @property
    def muted(self) -> bool:
        """Whether any layer mutes the metric."""
        return any(
            row.setting.key == "muted" and (row.given or row.below) == "yes" for row in self.rows
        )

    @property
    def open(self) -> bool:
        """Whether the page shows the fields at once."""
        return not self.key or any(row.changed or row.error for row in self.rows)


@dataclass(frozen=True)
class VarianceRow:
    """Learned variance of one metric, next to the assumed variance."""

    metric: str
    pairs: int
    in_force: bool
    spread: str
    assumed: str
    day: str


@dataclass(frozen=True)
class WarmUpRow:
    """Learned warm-up of one model, with the past processes that showed it and its use."""

    model: str
    minutes: str
    source: str
    use: str


@dataclass(frozen=True)
class SettingChange:
    """One entry of the change history."""

    at: datetime
    by: str
    where: str
    said: list[str]


@dataclass
class DetectionPage:
    """All data of the template."""

    facts: DetectionData
    groups: list[SettingGroup]
    learned: list[VarianceRow]
    changes: list[SettingChange]
    warm_ups: list[WarmUpRow]
    warm_up_default: str
    warm_up_processes: int = LEAST_PROCESSES
    warm_up_versions: int = LEAST_VERSIONS
    enough: int = ENOUGH_PAIRS
    error: str = ""


@dataclass
class SettingsInput:
    """Values of a posted form: the valid values, and an error for each invalid value."""

    texts: dict[str, str]
    values: dict[str, Value] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


def read_settings_input(posted: Mapping[str, str], facts: DetectionData) -> SettingsInput:
    """Parses every field; an empty field uses the layer below."""
    names = list_settings()
    given = SettingsInput({name: posted.get(name, "").strip()[:40] for name in names})
    for name, text in given.texts.items():
        if text:
            try:
                given.values[name] = names[name].read(text)
            except OverrideError as error:
                given.errors[name] = str(error)
    if not given.errors:
        try:
            check_overrides(given.values, facts.of_project)
        except OverrideError as error:
            given.errors[error.field] = str(error)
    return given


def build_detection_page(facts: DetectionData, given: SettingsInput | None = None) -> DetectionPage:
    """Builds the page; `given` is a rejected form."""
    names = list_settings()
    texts = (
        given.texts
        if given
        else {name: names[name].said(value) for name, value in facts.own.items()}
    )
    errors = given.errors if given else {}
    rows = [
        _row(setting, facts, texts.get(name, ""), errors.get(name, ""))
        for name, setting in names.items()
    ]
    keys = dict.fromkeys(row.setting.metric for row in rows)
    groups = [
        SettingGroup(key, *_titled(key), [row for row in rows if row.setting.metric == key])
        for key in keys
    ]
    changes = [_change(entry) for entry in facts.changes]
    return DetectionPage(
        facts,
        groups,
        _learned(facts),
        changes,
        [_warm_up_row(one) for one in facts.warm_ups],
        numbers.format_minutes(PRODUCTION.warm_up_minutes),
        error=next(iter(errors.values()), ""),
    )


def _warm_up_row(one: ModelWarmUp) -> WarmUpRow:
    set_to = numbers.format_minutes(one.in_force.warm_up_minutes)
    return WarmUpRow(
        model=one.model.name,
        minutes=numbers.format_minutes(one.learned.minutes),
        source=_warm_up_source(one.learned),
        use="in use" if one.in_force.warm_up_source == "learned" else f"not used: set to {set_to}",
    )


def _warm_up_source(learned: LearnedWarmUp) -> str:
    processes = numbers.plural(learned.processes, "process", "processes")
    return f"{processes} of {numbers.plural(learned.versions, 'version')}"


def _row(setting: Setting, facts: DetectionData, text: str, error: str) -> SettingRow:
    of_project, default = facts.of_project.get(setting.name), setting.default
    learned = ""
    if setting.name == "warm_up_minutes" and facts.model and facts.warm_ups:
        found = facts.warm_ups[0].learned
        default = max(found.minutes, default)
        learned = f"learned {numbers.format_minutes(found.minutes)} from {_warm_up_source(found)}"
    return SettingRow(
        setting=setting,
        label=TITLES.get(setting.key, setting.title),
        given=text,
        below=setting.said(default if of_project is None else of_project),
        below_from="default" if of_project is None else "project",
        default=setting.said(setting.default),
        error=error,
        learned=learned,
    )


def _titled(key: str) -> tuple[str, str]:
    if not key:
        return "All metrics", "required confidence of a verdict, and warm-up"
    metric = find_metric(key)
    stand_ins = any(
        isinstance(metric, RatioMetric) and metric.instead_of == key
        for metric in PRODUCTION.metrics
    )
    return (
        metric.title if key in METRICS else metric.title.capitalize(),
        "wall time, or GPU time if calls return before the GPU is done"
        if stand_ins
        else metric.detail,
    )


def lower_label(label: str) -> str:
    """A label within a sentence; ROLL BACK and WATCH keep their capitals."""
    return label[:1].lower() + label[1:]


def format_unit(setting: Setting) -> str:
    """The unit after a value."""
    if setting.unit == "yes or no":
        return ""
    return setting.unit if setting.unit.startswith("%") else f"{numbers.SPACE}{setting.unit}"


def _learned(facts: DetectionData) -> list[VarianceRow]:
    found = []
    for metric in (*PRODUCTION.metrics, *PRODUCTION.process_metrics):
        learned, prior = facts.learned.get(metric.name), getattr(metric, "prior_variance", None)
        if learned is None:
            continue
        spread = ", ".join(
            f"{numbers.percent(variance**0.5)} after {numbers.format_coarse_duration(at * 60)}"
            for at, variance in _some(learned.variance)
        )
        assumed = prior[0][1] ** 0.5 if prior else getattr(metric, "dispersion", None)
        if not prior and learned.dispersion is not None:
            spread = f"{numbers.percent(learned.dispersion)} beyond chance"
        named = find_metric(metric.name)
        found.append(
            VarianceRow(
                metric=", ".join(filter(None, (named.title, named.detail))),
                pairs=learned.pairs,
                in_force=learned.pairs >= ENOUGH_PAIRS,
                spread=spread or "no data yet",
                assumed=numbers.percent(assumed) if assumed is not None else "nothing",
                day=numbers.percent(learned.day_variance**0.5)
                if learned.day_variance is not None
                else "",
            )
        )
    return found


def _some(points: tuple[tuple[int, float], ...]) -> list[tuple[int, float]]:
    """The first, middle and last point."""
    return [points[at] for at in sorted({0, len(points) // 2, len(points) - 1})] if points else []


def _change(entry: AuditEntry) -> SettingChange:
    names = list_settings()
    said = []
    for name, before, after in list_changed_settings(entry):
        setting = names.get(name)
        if setting is None:
            said.append(f"{name}: {before} to {after}")
            continue
        was, now = (
            "not set" if value is None else f"{setting.said(value)}{format_unit(setting)}"
            for value in (before, after)
        )
        said.append(f"{setting.title}: {was} to {now}")
    of_model = isinstance(entry.after, dict) and "model" in entry.after
    return SettingChange(
        entry.at, entry.actor_name, f"for {entry.subject}" if of_model else "for all models", said
    )
