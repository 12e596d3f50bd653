"""Loaders of PostgreSQL's `numeric`, in which it answers sums and means of 64-bit counters: an int
where no digits follow the point, else a float.

Without them `Sum` of such a counter is a `Decimal` on PostgreSQL and an int on SQLite: other text
in JSON, and an error next to a float. No column has this type, so that no digits are lost."""

from __future__ import annotations

from decimal import Decimal

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.types import numeric


class NumericTextLoader(Loader):
    """The text format: `70` is an int, `70.5`, `70.0` and `NaN` are floats."""

    def load(self, data: Buffer) -> int | float:
        """The number."""
        return _to_number(Decimal(bytes(data).decode()))


class NumericBinaryLoader(numeric.NumericBinaryLoader):
    """The binary format, which pages ask for."""

    def load(self, data: Buffer) -> int | float:  # type: ignore[override]
        """The number."""
        return _to_number(super().load(data))


def register_numeric_loaders() -> None:
    """Registers both for every connection that is opened from now on."""
    psycopg.adapters.register_loader("numeric", NumericTextLoader)
    psycopg.adapters.register_loader("numeric", NumericBinaryLoader)


def _to_number(value: Decimal) -> int | float:
    return int(value) if value.as_tuple().exponent == 0 else float(value)
