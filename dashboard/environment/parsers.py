"""Setting parsers: read one value of the environment each. An error is one sentence that names the
variable."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit


class SettingError(Exception):
    """A missing or wrong setting. The message names the setting and the expected value."""


def read_choice(
    environ: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]
) -> str:
    """Reads one of the allowed words. Raises SettingError."""
    value = environ.get(name) or default
    if value not in allowed:
        raise SettingError(f"{name} is {value!r}, expected one of {', '.join(allowed)}.")
    return value


def read_flag(environ: Mapping[str, str], name: str) -> bool:
    """Reads 0 or 1; a missing variable means 0. Raises SettingError."""
    return read_choice(environ, name, "0", ("0", "1")) == "1"


def parse_port(name: str, value: str) -> int:
    """Parses a TCP port. Raises SettingError."""
    if not (value.isascii() and value.isdecimal() and len(value) <= 5 and 1 <= int(value) <= 65535):
        raise SettingError(f"{name} is {value!r}, expected a number from 1 to 65535.")
    return int(value)


def parse_url(text: str) -> SplitResult | None:
    """The parts of a URL; None if the URL or its port is invalid."""
    try:
        parts = urlsplit(text)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def read_value_or_file(environ: Mapping[str, str], name: str) -> str:
    """Reads the variable, or the single line of the file that NAME_FILE names.

    Raises SettingError if both are set, since the intended value would be a guess.
    """
    value, file = environ.get(name, ""), environ.get(f"{name}_FILE")
    if not file:
        return value
    if value:
        raise SettingError(f"{name} and {name}_FILE are both set, expected one of them.")
    try:
        text = Path(file).read_text(encoding="utf-8-sig").strip()  # without a byte order mark
        if not text or len(text.splitlines()) > 1:
            raise SettingError(
                f"{name}_FILE names a file that is empty or has several lines, expected one line."
            )
        return text
    except OSError as error:
        raise SettingError(f"{name}_FILE cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SettingError(f"{name}_FILE names a file that is not text in UTF-8.") from error
