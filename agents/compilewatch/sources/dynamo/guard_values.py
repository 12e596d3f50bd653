"""The values that a guard meets: what each cache entry was compiled for, what the call brought, and how that varies."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from compilewatch.sources.dynamo.call_inputs import sizes_of
from compilewatch.sources.dynamo.scrubber import guard_group, guard_line, normal
from compilewatch.wire.messages import MAX_VALUES

MOST_GUARDS, MOST_SEEN = 256, 1000
MAX_VALUE = 64
GROWING = 3
"""The count of numbers in a row that must follow one another to be called growth."""

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


class Failed(NamedTuple):
    """A guard of one cache entry that failed."""

    group: str
    compiled: str = ""
    """The value that the entry was compiled for; empty: the guard compares with none."""
    met: str = ""
    """The value that the call brought; empty: not known."""


class Varies(NamedTuple):
    """What a finding says of the values of a guard."""

    values: list[str]
    distinct: int
    pattern: str


def failed_guard(reason: str, variables: Mapping[str, Any]) -> Failed:
    """One line of torch's reason; of what the call brought torch does not tell all, the rest is looked up among the variables."""
    line, group = guard_line(reason), guard_group(reason)
    if found := _GRADIENT.search(line):
        return Failed(group, found["compiled"], "10"[int(found["compiled"])])
    if found := _EXPECTED.search(line):
        return Failed(group, found["compiled"], found["met"])
    if found := _FOUND.search(line):
        return Failed(group, met=found["met"])
    if found := _CLASS.search(line):
        known, value = _look_up(found["source"], variables)
        return Failed(group, found["compiled"], _class_name(type(value)) if known else "")
    if found := _EQUAL.search(line):
        known, value = _look_up(found["source"], variables)
        if known and found["length"]:
            value = len(value) if type(value) in (dict, list, tuple, set, str) else None
        return Failed(
            group,
            found["compiled"],
            repr(value) if known and type(value) in (bool, int, float) else "",
        )
    if found := _BOUND.search(line):
        known, value = _look_up(found["source"], variables)
        sizes = dict(enumerate(sizes_of(value))) if known else {}
        return Failed(group, met=str(sizes.get(int(found["dim"]), "")))
    return Failed(group)


class GuardValues:
    """Of each guard of a process the values that it met; bounded, and beyond the bound the oldest guard is forgotten."""

    def __init__(self) -> None:
        self._met: OrderedDict[tuple[str, str], _Met] = OrderedDict()

    def note(self, group: str, where: str, failed: Iterable[Failed]) -> Varies:
        """The guard failed for these entries, the oldest first."""
        met = self._met.setdefault((group, where), _Met())
        self._met.move_to_end((group, where))
        if len(self._met) > MOST_GUARDS:
            self._met.popitem(last=False)
        met.note(list(failed))
        return Varies(list(met.shown), met.distinct, met.pattern)


class _Met:
    """The values of one guard in the order in which they came."""

    def __init__(self) -> None:
        self.shown: list[str] = []
        self.distinct = 0
        self._seen: set[str] = set()
        self._last: int | None = None
        self._run = 0
        self._grows = True

    @property
    def pattern(self) -> str:
        if not self.distinct:
            return ""
        if self._grows and self._run >= GROWING:
            return "grows by one"
        return {1: "one value", 2: "alternates"}.get(self.distinct, "distinct values")

    def note(self, failed: list[Failed]) -> None:
        for value in dict.fromkeys(one.compiled for one in failed if one.compiled):
            if value not in self._seen and len(self._seen) < MOST_SEEN:
                self._add(value)
        brought = next((one.met for one in failed if one.met), "")
        if brought:
            self._add(brought)
        compiled = {one.compiled for one in failed if one.compiled}
        # What the call brought differs from what each of these entries was compiled for.
        self.distinct = max(self.distinct, len(self._seen), len(compiled) + bool(compiled))

    def _add(self, value: str) -> None:
        number = int(value) if _NUMBER.fullmatch(value) else None
        self._grows = self._grows and number is not None and self._last in (None, number - 1)
        self._run, self._last = self._run + 1, number
        if len(self._seen) < MOST_SEEN:
            self._seen.add(value)
        shown = (
            "" if value[:1] in "'\"" else normal(value, MAX_VALUE)
        )  # a text that an argument was stays in the process
        if shown and shown not in self.shown and len(self.shown) < MAX_VALUES:
            self.shown.append(shown)


def _look_up(source: str, variables: Mapping[str, Any]) -> tuple[bool, Any]:
    """What lies under a guard's source, and whether that is known. Runs no code of the job: no property, no `__getitem__` of a class."""
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
    """As torch prints it."""
    return (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
