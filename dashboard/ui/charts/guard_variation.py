"""Variation of a guard's value between compilations as text, and the remedy for the pattern."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FEW = 3
HIDDEN = "#"
"""Placeholder of the agent for a value that it does not report."""
NOUNS = (
    ("dtype", "dtypes", ("dtype",)),
    ("class", "classes", ("type", "class")),
    ("object", "objects", ("obj_id", "id_match", "___check_obj")),
    ("length", "lengths", ("len(", "length")),
    ("size", "sizes", ("size", "shape")),
)
"""Nouns for the values, by a lower-case part of the guard's text."""
REMEDIES = {
    "grows by one": "A counter is compiled in: keep the counter outside of the compiled function, "
    "or pass it as a tensor.",
    "alternates": "Compile the function once per value and call the matching function, "
    "or pass the value as a tensor.",
    "one value": "The value changed once: set the value before the first call, so that the first "
    "compilation uses it.",
}
DISTINCT = (
    "Each value compiles once: pass the value as a tensor, or mark it dynamic, so that "
    "one compilation serves all values."
)
DISTINCT_NAMES = (
    "All instances share one code object and its limit: compile each instance separately, "
    "or set torch._dynamo.config.recompile_limit to at least {distinct} before the first call."
)


@dataclass(frozen=True)
class Variation:
    """The observed values of a finding; empty if the finding is not about values."""

    values: tuple[str, ...] = ()
    distinct: int = 0
    pattern: str = ""
    text: str = ""

    @property
    def noun(self) -> tuple[str, str]:
        """Singular and plural noun for the values."""
        lower = self.text.lower()
        return next(
            ((one, many) for one, many, parts in NOUNS if any(part in lower for part in parts)),
            ("value", "values"),
        )

    @property
    def count(self) -> int:
        """Minimum number of different values."""
        return max(self.distinct, len(self.values))

    @property
    def words(self) -> str:
        """The variation on one line with the first few values; empty if unknown."""
        return self.said(FEW)

    @property
    def all_words(self) -> str:
        """The variation with every reported value."""
        return self.said(len(self.values))

    @property
    def remedy(self) -> str:
        """The remedy for the pattern; empty for an unknown pattern."""
        if self.pattern == "distinct values":
            return (
                DISTINCT_NAMES.format(distinct=self.count)
                if self.noun[0] in ("class", "object")
                else DISTINCT
            )
        return REMEDIES.get(self.pattern, "")

    def said(self, most: int) -> str:
        """The variation with at most `most` values."""
        if not self.count:
            return ""
        one, many = self.noun
        shown = self.values[:most]
        named = f": {', '.join(shown)}{' …' if self.count > len(shown) else ''}" if shown else ""
        counted = f"{self.count:,} {one if self.count == 1 else many}"
        if self.pattern == "grows by one":
            return f"grows by one at each call{named}"
        if self.pattern == "alternates":
            return f"alternates between {counted}{named}"
        if self.pattern == "distinct values":
            return f"{counted}, all different{named}"
        return f"{counted}{named}"


def build_variation(values: object, distinct: int, pattern: str, text: str) -> Variation:
    """The variation from the columns of a finding; numbers in numeric order, names sorted."""
    texts = (
        [str(value) for value in values]
        if isinstance(values, Iterable) and not isinstance(values, str)
        else []
    )
    return Variation(_sort_values(texts), distinct, pattern, text)


def _sort_values(values: Sequence[str]) -> tuple[str, ...]:
    try:
        return tuple(sorted(values, key=float))
    except ValueError:
        # The values contain a placeholder or a name.
        return tuple(sorted(values, key=lambda value: (value == HIDDEN, value)))
