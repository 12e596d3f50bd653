"""Advice for failing guards: the varying input, its observed values, and fixes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

EXACT = 12
"""Maximum number of values with their own row; more values are grouped by powers of two."""
HIDDEN = "#"
"""Placeholder of the agent for numbers of four and more digits, which may be personal data."""

_NAME = r"[A-Za-z_][\w.]*(?:\[[^\]]*\][\w.]*)*"
_MISMATCH = re.compile(
    r"^tensor ['\"](?P<name>.+?)['\"] (?P<what>size|stride) mismatch at index (?P<dim>\d+)"
)
_SIZE = re.compile(
    rf"(?P<name>{_NAME})\.(?:size\(\)\[(?P<dim>\d+)\]|size\((?P<dim2>\d+)\)|shape\[(?P<dim3>\d+)\])"
)
_LENGTH = re.compile(rf"\blen\((?P<name>{_NAME})\)")
_PLAIN = re.compile(rf"^(?P<name>{_NAME}) == (?:-?\d|\*|{HIDDEN})")
_ACTUAL = re.compile(rf"\b(?:actual|got) (?P<value>-?\d+|{HIDDEN})")
_COMPARED = re.compile(rf"[=!<>]=? (?P<value>-?\d+|{HIDDEN})(?![\w.])")


@dataclass(frozen=True)
class VaryingInput:
    """The input that changes from call to call: a size, a stride, a length or a plain number of
    `source`."""

    what: str
    source: str
    dim: int | None = None

    @property
    def said(self) -> str:
        """The input as text."""
        if self.what in ("size", "stride"):
            return f"the {self.what} of dimension {self.dim} of `{self.source}`"
        return (
            f"the length of `{self.source}`"
            if self.what == "length"
            else f"the number `{self.source}`"
        )


@dataclass(frozen=True)
class ValueBucket:
    """A group of values with the number of sightings."""

    label: str
    count: int


@dataclass(frozen=True)
class ObservedValues:
    """The values that recompilations observed; `compiled_for` is True if only the compiled values
    are known."""

    buckets: list[ValueBucket] = field(default_factory=list)
    distinct: int = 0
    total: int = 0
    hidden: int = 0
    compiled_for: bool = False

    @property
    def most(self) -> int:
        """The highest count of all buckets."""
        return max((bucket.count for bucket in self.buckets), default=0)


@dataclass(frozen=True)
class GuardRemedy:
    """One fix: a sentence, and a line to copy if there is one."""

    title: str
    text: str
    code: str = ""


def find_varying_input(text: str) -> VaryingInput | None:
    """The input that the guard's text names; None if the text names no size, length or number."""
    text = text.strip()
    if found := _MISMATCH.match(text):
        return VaryingInput(found["what"], found["name"], int(found["dim"]))
    if found := _SIZE.search(text):
        return VaryingInput(
            "size", found["name"], int(found["dim"] or found["dim2"] or found["dim3"])
        )
    if found := _LENGTH.search(text):
        return VaryingInput("length", found["name"])
    if found := _PLAIN.match(text):
        return VaryingInput("number", found["name"])
    return None


def count_observed_values(reasons: Iterable[str]) -> ObservedValues:
    """Values from the reasons of recompilations: the observed values, or the compiled values if no
    reason contains observed values."""
    texts = list(reasons)
    met = [found["value"] for text in texts if (found := _ACTUAL.search(text))]
    compiled_for = not met
    if compiled_for:
        met = [found["value"] for text in texts if (found := _COMPARED.search(text))]
    counts = Counter(int(value) for value in met if value != HIDDEN)
    hidden = sum(value == HIDDEN for value in met)
    buckets = (
        [ValueBucket(str(value), counts[value]) for value in sorted(counts)]
        if len(counts) <= EXACT
        else _by_power(counts)
    )
    if hidden:
        buckets.append(ValueBucket("1,000 and more", hidden))
    return ObservedValues(buckets, len(counts), len(met), hidden, compiled_for and bool(met))


def _by_power(counts: Counter[int]) -> list[ValueBucket]:
    """Groups values by powers of two; values up to zero form one group."""
    groups: Counter[int] = Counter()
    for value, count in counts.items():
        groups[pad_size(value) if value > 0 else 0] += count
    return [ValueBucket(_range(top), groups[top]) for top in sorted(groups)]


def _range(top: int) -> str:
    if top == 0:
        return "0 and less"
    return str(top) if top <= 2 else f"{top // 2 + 1:,} to {top:,}"


def pad_size(value: int) -> int:
    """The power of two to which a size is padded."""
    return 1 << (value - 1).bit_length() if value > 0 else value


def dynamic_source(name: str) -> str:
    """The name in the form of TORCH_COMPILE_DYNAMIC_SOURCES: `x` becomes `L['x']`, `batch['ids']`
    becomes `L['batch']['ids']`."""
    if name.startswith(("L[", "G[")):
        return name
    head = re.match(r"\w+", name)
    return f"L['{head[0]}']{name[head.end() :]}" if head else name


def format_argument(name: str) -> str:
    """The name in the form of the job's code."""
    found = re.match(r"^[LG]\[['\"](\w+)['\"]\](.*)$", name)
    return found[1] + found[2] if found else name


def list_guard_remedies(found: VaryingInput | None, values: ObservedValues) -> list[GuardRemedy]:
    """Fixes, smallest change first; empty if the varying input is unknown."""
    if found is None or found.what == "stride":
        return []
    source = dynamic_source(found.source)
    ways = []
    if found.what == "size":
        code = f"torch._dynamo.mark_dynamic({format_argument(found.source)}, {found.dim})"
        ways.append(
            GuardRemedy(
                "Mark it dynamic",
                "Call this before the first call, on the tensor that is passed: one compilation "
                "serves every size.",
                code,
            )
        )
    if found.what in ("size", "number"):
        text = (
            "Without a code change: torch treats the source as dynamic from the first compilation."
        )
        ways.append(
            GuardRemedy("Name the source", text, f'TORCH_COMPILE_DYNAMIC_SOURCES="{source}"')
        )
    if found.what == "size" and (padding := _padding(values)):
        ways.append(padding)
    if found.what == "length":
        ways.append(
            GuardRemedy(
                "Keep the number of items",
                "Pass one tensor, or always the same number of items: the length is compiled in.",
            )
        )
    return ways


def _padding(values: ObservedValues) -> GuardRemedy | None:
    """Padding, if it reduces the number of sizes and all sizes are known."""
    if values.hidden or values.compiled_for or values.distinct < 2:
        return None
    if values.distinct > EXACT:
        sizes = len(values.buckets)
        return GuardRemedy(
            "Pad to powers of two",
            f"{sizes} sizes instead of {values.distinct}; each is compiled once.",
        )
    met = [int(bucket.label) for bucket in values.buckets]
    sizes_after = sorted({pad_size(value) for value in met if value > 0})
    if not sizes_after or len(sizes_after) >= values.distinct or min(met) < 1:
        return None
    last = f" and {sizes_after[-1]}" if len(sizes_after) > 1 else ""
    named = ", ".join(map(str, sizes_after[:-1])) + last if last else str(sizes_after[0])
    return GuardRemedy(
        "Pad",
        f"Pad to {named}: {len(sizes_after)} size{'s' if len(sizes_after) > 1 else ''} "
        f"instead of {values.distinct}.",
    )
