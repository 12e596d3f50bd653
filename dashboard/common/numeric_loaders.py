"""Numeric loaders: PostgreSQL's `numeric` becomes an int without decimal digits, else a float.

PostgreSQL returns sums and means of 64-bit counters as `numeric`. Without the loaders, `Sum` of a
counter is a `Decimal` on PostgreSQL and an int on SQLite. JSON would then differ, and arithmetic
with a float would fail. No column has the type `numeric`, so no digits are lost.
"""

from __future__ import annotations

from decimal import Decimal

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types import numeric


class NumericTextLoader(Loader):
    """Loader of the text format: `70` is an int; `70.5`, `70.0` and `NaN` are floats."""

    def load(self, data: Buffer) -> int | float:
        """Converts one value."""
        return _to_number(Decimal(bytes(data).decode()))


class NumericBinaryLoader(numeric.NumericBinaryLoader):
    """Loader of the binary format, which pages use."""

    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        """Converts one value."""
        return _to_number(super().load(data))


def register_numeric_loaders() -> None:
    """Registers both loaders for every connection opened from now on."""
    psycopg.adapters.register_loader("numeric", NumericTextLoader)
    psycopg.adapters.register_loader("numeric", NumericBinaryLoader)


def _to_number(value: Decimal) -> int | float:
    return int(value) if value.as_tuple().exponent == 0 else float(value)
