"""How what a guard compares with varies from one compilation to the next, in words, and the remedy
that the pattern asks for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FEW = 3
HIDDEN = "#"
"""What an agent puts in the place of a value that it does not report."""
NOUNS = (
    ("dtype", "dtypes", ("dtype",)),
    ("class", "classes", ("type", "class")),
    ("object", "objects", ("obj_id", "id_match", "___check_obj")),
    ("length", "lengths", ("len(", "length")),
    ("size", "sizes", ("size", "shape")),
)
"""What the values are, by a part of the guard's text in lower case."""
REMEDIES = {
    "grows by one": "A counter is compiled in: keep it outside of the "
    "compiled function, or hand it over "
    "as a tensor.",
    "alternates": "Compile the function once for each of the values "
    "and call the one that fits, or hand "
    "the value over as a tensor.",
    "one value": "The value changed once: set it before the first "
    "call, so that the first compilation "
    "sees it.",
}
DISTINCT = (
    "Each value is compiled once: hand the value over as a tensor, or mark it dynamic, so that "
    "one compilation serves all of them."
)
DISTINCT_NAMES = (
    "All of them share one code object and its limit: compile each instance by itself "
    "instead of the code that they share, "
    "or set torch._dynamo.config.recompile_limit to at least {distinct} before the first call."
)


@dataclass(frozen=True)
class Variation:
    """What a finding reports of the values that it met; nothing where it is not about values."""

    values: tuple[str, ...] = ()
    distinct: int = 0
    pattern: str = ""
    text: str = ""

    @property
    def noun(self) -> tuple[str, str]:
        """One and many of what varies."""
        lower = self.text.lower()
        return next(
            ((one, many) for one, many, parts in NOUNS if any(part in lower for part in parts)),
            ("value", "values"),
        )

    @property
    def count(self) -> int:
        """How many different ones there are at least."""
        return max(self.distinct, len(self.values))

    @property
    def words(self) -> str:
        """In one line with the first few values; empty where nothing is known."""
        return self.said(FEW)

    @property
    def all_words(self) -> str:
        """The same with every value that was reported."""
        return self.said(len(self.values))

    @property
    def remedy(self) -> str:
        """What the pattern asks for; empty where it is not known."""
        if self.pattern == "distinct values":
            return (
                DISTINCT_NAMES.format(distinct=self.count)
                if self.noun[0] in ("class", "object")
                else DISTINCT
            )
        return REMEDIES.get(self.pattern, "")

    def said(self, most: int) -> str:
        """How they vary, with as many values."""
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
    """Of the columns of a finding; numbers in their order, names as they are sorted."""
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
        # One that is hidden, or a name among them.
        return tuple(sorted(values, key=lambda value: (value == HIDDEN, value)))
