"""Settings overrides: every operator setting by name with its bounds and effect, and the Settings
that result from the operator's choices."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

from dashboard.regressions.judge.metric import Metric
from dashboard.regressions.judge.settings import PRODUCTION, RatioMetric, Settings
from dashboard.regressions.judge.warm_up import MAX_WARM_UP_MINUTES, LearnedWarmUp
from dashboard.vocabulary.numbers import MINUS, significant

Value = float | bool
M = TypeVar("M", bound=Metric)
SettingUnit = Literal["%", "min", "times", "an hour", "yes or no"]

ENOUGH_PAIRS = 30
"""Healthy pairs from which the learned variance replaces the default."""

MAX_FACTOR_DOWN, MAX_FACTOR_UP = 10.0, 20.0
"""A size is a tenth to twenty times its default. Beyond, it is a typing error."""


class OverrideError(ValueError):
    """An invalid choice. The text names the setting and the expected value; `field` is the name of
    the setting."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.field = name


@dataclass(frozen=True)
class Setting:
    """One setting. `name` is unique (`p50.tolerated`); values are shares if the unit is %."""

    name: str
    metric: str
    key: str
    title: str
    unit: SettingUnit
    default: Value
    least: float
    most: float
    effect: str

    @property
    def unit_suffix(self) -> str:
        """The unit as it follows a value: a percent sign without a space."""
        return self.unit if self.unit == "%" else f" {self.unit}"

    def said(self, value: Value) -> str:
        """A value as people type it, without the unit."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        size = value * 100 if self.unit == "%" else value
        text = significant(size, 4) if math.isfinite(size) else str(size)
        return text.replace(",", "").replace(MINUS, "-")

    def read(self, text: str) -> Value:
        """The value of a person's text, in the setting's unit. Raises OverrideError."""
        typed = text.strip().removesuffix(self.unit).strip()
        if isinstance(self.default, bool):
            if typed not in ("yes", "no"):
                raise OverrideError(
                    self.name, f"{self.title} is {text.strip()[:40]!r}, expected yes or no."
                )
            return typed == "yes"
        try:
            number = float(typed)
        except ValueError:
            raise OverrideError(
                self.name, f"{self.title} is {text.strip()[:40]!r}, expected {self.expected}."
            ) from None
        return self.checked(number / 100 if self.unit == "%" else number)

    def checked(self, value: Value) -> Value:
        """The value, if it is valid. Raises OverrideError."""
        if isinstance(self.default, bool):
            if not isinstance(value, bool):
                raise OverrideError(self.name, f"{self.title} is {value!r}, expected yes or no.")
            return value
        fits = math.isfinite(value) and (self.unit != "min" or value == int(value))
        if isinstance(value, bool) or not fits or not self.least <= round(value, 12) <= self.most:
            unit = "" if self.unit == "times" else self.unit_suffix
            raise OverrideError(
                self.name, f"{self.title} is {self.said(value)}{unit}, expected {self.expected}."
            )
        return int(value) if self.unit == "min" else round(float(value), 12)

    @property
    def expected(self) -> str:
        """The bounds as text."""
        kind = "a whole number of minutes from" if self.unit == "min" else "a number from"
        return f"{kind} {self.said(self.least)} to {self.said(self.most)}" + (
            self.unit_suffix if self.unit in ("%", "an hour") else ""
        )


@dataclass(frozen=True)
class LearnedMetric:
    """Values learned about one metric from healthy pairs of past versions; None if the pairs did
    not show it."""

    pairs: int
    variance: tuple[tuple[int, float], ...]
    day_variance: float | None = None
    dispersion: float | None = None
    prior_df: int | None = None


GENERAL = {
    "roll_back_alpha": (
        "%",
        0.001,
        0.20,
        "False-positive rate of ROLL BACK",
        "Of healthy deployments, all metrics together; 0.5% is 1 in 200. Smaller: fewer false "
        "positives, but small changes are found later or never.",
    ),
    "watch_alpha": (
        "%",
        0.01,
        0.50,
        "False-positive rate of WATCH",
        "The same for WATCH. HEALTHY waits until no metric is regressed at this level.",
    ),
    "watch_minutes": (
        "min",
        1,
        120,
        "Minutes before WATCH",
        "A metric must be regressed for this time without a break before WATCH; for "
        f"{PRODUCTION.narrow_minutes} min if one instance accounts for nearly all of the change.",
    ),
    "warm_up_minutes": (
        "min",
        0,
        240,
        "Warm-up",
        "The first minutes of every process, which are not compared, for both versions alike. A "
        "fault that ends within the warm-up is not detected. Empty: learned for each model, at "
        f"most {MAX_WARM_UP_MINUTES} min.",
    ),
}
"""Unit, bounds, title and effect of settings shared by all metrics."""

EFFECTS = {
    "smallest_effect": "A smaller change is never REGRESSED, regardless of confidence.",
    "tolerated": "HEALTHY requires that the data rules out a larger change.",
    "threshold": "An instance above this value counts as affected.",
    "times": "If the baseline is affected too, only a rise by this factor matters.",
    "points": "If the baseline is affected too, only an absolute rise of at least this size "
    "matters.",
    "hold_minutes": "Time of REGRESSED without a break before ROLL BACK; less for a large change.",
    "watch_minutes": "The same for WATCH; this metric needs longer than others.",
    "muted": "Shown with the other metrics, but excluded from every verdict.",
}
"""The effect of each field of a metric. A metric has the fields of its row in the table."""

TITLES = {
    "smallest_effect": "Smallest effect",
    "tolerated": "Tolerated change",
    "threshold": "Threshold",
    "times": "Minimum factor",
    "points": "Minimum increase",
    "hold_minutes": "Minutes before ROLL BACK",
    "watch_minutes": "Minutes before WATCH",
    "muted": "Muted",
}


def list_settings(base: Settings = PRODUCTION) -> dict[str, Setting]:
    """Every setting by name, in the order of the page. A metric that replaces another one follows
    it."""
    found = [
        Setting(name, "", name, title, unit, getattr(base, name), least, most, effect)  # type: ignore[arg-type]
        for name, (unit, least, most, title, effect) in GENERAL.items()
    ]
    for metric in (*base.metrics, *base.process_metrics):
        if not (isinstance(metric, RatioMetric) and metric.instead_of):
            found += [
                _make_metric_setting(metric, key)
                for key in EFFECTS
                if getattr(metric, key, None) is not None and _decides(metric, key)
            ]
    return {setting.name: setting for setting in found}


def _decides(metric: Metric, key: str) -> bool:
    """True if a field has an effect. A metric that cannot ask for ROLL BACK has no hold time and
    does not hold back HEALTHY."""
    return metric.hard or key not in ("hold_minutes", "tolerated")


def _make_metric_setting(metric: Metric, key: str) -> Setting:
    default = getattr(metric, key)
    name, title = f"{metric.name}.{key}", f"{TITLES[key]} of {metric.name}"
    if key == "muted":
        return Setting(name, metric.name, key, title, "yes or no", default, 0, 1, EFFECTS[key])
    if key in ("hold_minutes", "watch_minutes"):
        return Setting(name, metric.name, key, title, "min", default, 2, 240, EFFECTS[key])
    unit: SettingUnit = (
        "times"
        if key == "times"
        else "an hour"
        if key in ("threshold", "points") and metric.unit == "per hour"
        else "%"
    )
    least, most = default / MAX_FACTOR_DOWN, default * MAX_FACTOR_UP
    if unit == "%" and key in ("threshold", "points"):
        most = min(most, 1.0)  # of all calls
    return Setting(
        name,
        metric.name,
        key,
        title,
        unit,
        default,
        1.0 if unit == "times" else least,
        most,
        EFFECTS[key],
    )


def filter_known(overrides: Mapping[str, Any], base: Settings = PRODUCTION) -> dict[str, Value]:
    """The stored choices that still name a setting and lie within its bounds."""
    found: dict[str, Value] = {}
    names = list_settings(base)
    for name, value in overrides.items():
        if name in names and isinstance(value, bool | int | float):
            try:
                found[name] = names[name].checked(value)
            except OverrideError:
                continue
    return found


def check_overrides(
    chosen: Mapping[str, Value], below: Mapping[str, Value] | None = None
) -> dict[str, Value]:
    """The valid choices of one layer: checked individually, and against each other together with
    the layer below. Raises OverrideError."""
    names = list_settings()
    for name in chosen:
        if name not in names:
            raise OverrideError(
                name, f"{name[:80]} is not a setting, expected one of {', '.join(names)}."
            )
    found = {name: names[name].checked(value) for name, value in chosen.items()}
    merged = merge_layers(below or {}, found)
    for smaller, larger, why in _list_ordered_pairs(names):
        low, high = (merged.get(name, names[name].default) for name in (smaller, larger))
        if low > high and larger in found:
            raise _contradiction(names[larger], high, "at least", names[smaller], low, why)
        if low > high and smaller in found:
            raise _contradiction(names[smaller], low, "at most", names[larger], high, why)
    return found


def _contradiction(
    blamed: Setting, value: Value, bound: str, other: Setting, limit: Value, why: str
) -> OverrideError:
    said = (
        f"{blamed.said(value)}{blamed.unit_suffix}, "
        f"expected {bound} {other.said(limit)}{other.unit_suffix}"
    )
    return OverrideError(blamed.name, f"{blamed.title} is {said}: {why}.")


def _list_ordered_pairs(names: Mapping[str, Setting]) -> Iterator[tuple[str, str, str]]:
    yield "roll_back_alpha", "watch_alpha", "WATCH must be raised before ROLL BACK"
    for name, setting in names.items():
        tolerated = f"{setting.metric}.tolerated"
        if setting.key == "smallest_effect" and tolerated in names:
            yield name, tolerated, "a change too small to matter must be tolerated"


def build_settings(
    overrides: Mapping[str, Any],
    learned: Mapping[str, LearnedMetric] | None = None,
    base: Settings = PRODUCTION,
    warm_up: LearnedWarmUp | None = None,
) -> Settings:
    """The settings for these choices and learned values. Equal input gives an equal result."""
    chosen = filter_known(overrides, base)
    general: dict[str, Any] = {name: chosen[name] for name in GENERAL if name in chosen}
    general |= _warm_up_fields(chosen, warm_up, base)
    taught = learned or {}
    metrics = tuple(_metric_for(metric, chosen, taught.get(metric.name)) for metric in base.metrics)
    process_metrics = tuple(
        _metric_for(metric, chosen, taught.get(metric.name)) for metric in base.process_metrics
    )
    return replace(base, metrics=metrics, process_metrics=process_metrics, **general)


def _warm_up_fields(
    chosen: Mapping[str, Value], learned: LearnedWarmUp | None, base: Settings
) -> dict[str, Any]:
    """A chosen warm-up has priority over a learned one, which is never below the default."""
    if "warm_up_minutes" in chosen:
        return {"warm_up_source": "set"}
    if learned is None:
        return {}
    minutes = max(base.warm_up_minutes, min(learned.minutes, MAX_WARM_UP_MINUTES))
    return {
        "warm_up_minutes": minutes,
        "warm_up_source": "learned",
        "warm_up_processes": learned.processes,
    }


def _metric_for(metric: M, chosen: Mapping[str, Value], learned: LearnedMetric | None) -> M:
    follows = (isinstance(metric, RatioMetric) and metric.instead_of) or metric.name
    changes: dict[str, Any] = {
        key: chosen[name] for key in EFFECTS if (name := f"{follows}.{key}") in chosen
    }
    if learned is not None and learned.pairs >= ENOUGH_PAIRS:
        if learned.variance and hasattr(metric, "prior_variance"):
            changes["prior_variance"] = tuple(
                (minutes, round_variance(variance)) for minutes, variance in learned.variance
            )
        if learned.prior_df is not None and hasattr(metric, "prior_df"):
            changes["prior_df"] = learned.prior_df
        if learned.day_variance is not None and hasattr(metric, "day_variance"):
            changes["day_variance"] = round_variance(learned.day_variance)
        if learned.dispersion is not None and hasattr(metric, "dispersion"):
            changes["dispersion"] = round_variance(learned.dispersion)
    return replace(metric, **changes) if changes else metric


def round_variance(variance: float) -> float:
    """Rounds to two digits: a night without new information must not rebuild every comparison."""
    return float(f"{variance:.1e}")


def list_muted_metrics(settings: Settings) -> list[str]:
    """The metrics that are shown and not judged."""
    return [
        metric.name for metric in (*settings.metrics, *settings.process_metrics) if metric.muted
    ]


def merge_layers(*layers: Mapping[str, Value]) -> dict[str, Value]:
    """The last layer with a setting decides: the project's, then the model's."""
    return {name: value for layer in layers for name, value in layer.items()}
