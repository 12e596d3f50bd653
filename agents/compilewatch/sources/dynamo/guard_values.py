"""Guard-value tracker: the values of each failed guard, and the pattern of their variation.

A failed guard has an expected value, for which the cache entry was compiled, and a value in the
call."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compilewatch.sources.dynamo.call_inputs import sizes_of
from compilewatch.sources.dynamo.scrubber import guard_group, guard_line, normalize
from compilewatch.wire.messages import MAX_VALUES

MAX_GUARDS, MAX_DISTINCT_VALUES = 256, 1000
MAX_VALUE_CHARS = 64
MIN_GROWTH_VALUES = 3
"""Minimum number of consecutive values that must each grow by one to count as growth."""

_GRADIENT = re.compile(r"expected requires_grad=(?P<compiled>[01])$")
_BOUND = re.compile(
    r"^(?:-?\d+ <=? )?(?P<source>[^=<>!*+/ ]+)\.size\(\)\[(?P<dim>\d+)\](?: <=? -?\d+)?$"
)
_EXPECTED = re.compile(r"expected (?P<compiled>.+?), (?:actual|got) (?P<met>.+)$")
_CLASS = re.compile(
    r"_check_(?:type|obj)_id\((?P<source>.+), \d+\), type=<class '(?P<compiled>[^']+)'>"
)
_FOUND = re.compile(r"\bfound <class '(?P<met>[^']+)'>")
_LITERAL = r"""True|False|None|-?\d[\w.+-]*|'[^']*'|"[^"]*\""""
_EQUAL = re.compile(
    rf"^(?P<length>len\()?(?P<source>[^=<>!]+?)(?(length)\)) == (?P<compiled>{_LITERAL})$"
)
_HEAD = re.compile(r"(?:[LG]\[['\"](?P<quoted>\w+)['\"]\]|(?P<plain>[A-Za-z_]\w*))")
_STEP = re.compile(
    r"\.(?P<attribute>\w+)|\[(?P<number>-?\d+)\]|\[(?P<quote>['\"])(?P<key>[^'\"]*)(?P=quote)\]"
)
_NUMBER = re.compile(r"-?\d{1,18}")


class FailedGuard(NamedTuple):
    """A guard of one cache entry that failed."""

    group: str
    expected_value: str = ""
    """Expected value, for which the entry was compiled. Empty: the guard compares with no value."""
    call_value: str = ""
    """Value in the call. Empty: unknown."""


class Variation(NamedTuple):
    """Values of a guard, as a finding reports them."""

    values: list[str]
    distinct: int
    pattern: str


def parse_failed_guard(reason: str, variables: Mapping[str, Any]) -> FailedGuard:
    """Parse one line of torch's reason. If torch leaves out the value in the call, the value is
    read from the variables of the frame."""
    line, group = guard_line(reason), guard_group(reason)
    if found := _GRADIENT.search(line):
        return FailedGuard(group, found["compiled"], "10"[int(found["compiled"])])
    if found := _EXPECTED.search(line):
        return FailedGuard(group, found["compiled"], found["met"])
    if found := _FOUND.search(line):
        return FailedGuard(group, call_value=found["met"])
    if found := _CLASS.search(line):
        known, value = _read_source(found["source"], variables)
        return FailedGuard(group, found["compiled"], _class_name(type(value)) if known else "")
    if found := _EQUAL.search(line):
        known, value = _read_source(found["source"], variables)
        if known and found["length"]:
            value = len(value) if type(value) in (dict, list, tuple, set, str) else None
        return FailedGuard(
            group,
            found["compiled"],
            repr(value) if known and type(value) in (bool, int, float) else "",
        )
    if found := _BOUND.search(line):
        known, value = _read_source(found["source"], variables)
        sizes = dict(enumerate(sizes_of(value))) if known else {}
        return FailedGuard(group, call_value=str(sizes.get(int(found["dim"]), "")))
    return FailedGuard(group)


class GuardValues:
    """Values of each guard of the process. Beyond MOST_GUARDS guards, the oldest guard is
    dropped."""

    def __init__(self) -> None:
        self._guards: OrderedDict[tuple[str, str], _ValueSeries] = OrderedDict()

    def note(self, group: str, where: str, failed: Iterable[FailedGuard]) -> Variation:
        """Record that the guard failed for these entries, oldest first. Return all its
        values."""
        series = self._guards.setdefault((group, where), _ValueSeries())
        self._guards.move_to_end((group, where))
        if len(self._guards) > MAX_GUARDS:
            self._guards.popitem(last=False)
        series.note(list(failed))
        return Variation(list(series.shown), series.distinct, series.pattern)


class _ValueSeries:
    """Values of one guard in order of observation."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.distinct = 0
        self._values: set[str] = set()
        self._last_number: int | None = None
        self._value_count = 0
        self._grows_by_one = True

    @property
    def pattern(self) -> str:
        if not self.distinct:
            return ""
        if self._grows_by_one and self._value_count >= MIN_GROWTH_VALUES:
            return "grows by one"
        return {1: "one value", 2: "alternates"}.get(self.distinct, "distinct values")

    def note(self, failed: list[FailedGuard]) -> None:
        for value in dict.fromkeys(
            guard.expected_value for guard in failed if guard.expected_value
        ):
            if value not in self._values and len(self._values) < MAX_DISTINCT_VALUES:
                self._add(value)
        call_value = next((guard.call_value for guard in failed if guard.call_value), "")
        if call_value:
            self._add(call_value)
        compiled = {guard.expected_value for guard in failed if guard.expected_value}
        # The value in the call differs from the expected value of each of these entries.
        self.distinct = max(self.distinct, len(self._values), len(compiled) + bool(compiled))

    def _add(self, value: str) -> None:
        number = int(value) if _NUMBER.fullmatch(value) else None
        self._grows_by_one = (
            self._grows_by_one and number is not None and self._last_number in (None, number - 1)
        )
        self._value_count, self._last_number = self._value_count + 1, number
        if len(self._values) < MAX_DISTINCT_VALUES:
            self._values.add(value)
        # A string argument of the job stays in the process.
        shown = "" if value[:1] in "'\"" else normalize(value, MAX_VALUE_CHARS)
        if shown and shown not in self.shown and len(self.shown) < MAX_VALUES:
            self.shown.append(shown)


def _read_source(source: str, variables: Mapping[str, Any]) -> tuple[bool, Any]:
    """Return whether the value under a guard's source is known, and the value. Runs no code of the
    job: no property and no `__getitem__` of a class."""
    head = _HEAD.match(source)
    name = (head["quoted"] or head["plain"] or "") if head else ""
    if head is None or name not in variables:
        return False, None
    value, at = variables[name], head.end()
    try:
        while at < len(source):
            step = _STEP.match(source, at)
            if step is None:
                return False, None
            if step["attribute"]:
                value = object.__getattribute__(value, "__dict__")[step["attribute"]]
            elif issubclass(type(value), dict):
                value = dict.__getitem__(
                    value, int(step["number"]) if step["number"] else step["key"]
                )
            elif type(value) in (list, tuple) and step["number"]:
                value = value[int(step["number"])]
            else:
                return False, None
            at = step.end()
    except (AttributeError, KeyError, IndexError, TypeError):
        return False, None
    return True, value


def _class_name(kind: type) -> str:
    """Return the name of the class as torch prints it."""
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
