"""How one value of the environment is read: a word, a number, an address, a file; what is wrong is
a sentence with its name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit


class SettingError(Exception):
    """A setting is missing or wrong; the message names it and says what was expected."""


def read_choice(
    environ: Mapping[str, str], name: str, default: str, allowed: tuple[str, ...]
) -> str:
    """One of the words that are allowed."""
    value = environ.get(name) or default
    if value not in allowed:
        raise SettingError(f"{name} is {value!r}, expected one of {', '.join(allowed)}.")
    return value


def read_flag(environ: Mapping[str, str], name: str) -> bool:
    """0 or 1; 0 where nothing is said."""
    return read_choice(environ, name, "0", ("0", "1")) == "1"


def parse_port(name: str, value: str) -> int:
    """A port of TCP."""
    if not (value.isascii() and value.isdecimal() and len(value) <= 5 and 1 <= int(value) <= 65535):
        raise SettingError(f"{name} is {value!r}, expected a number from 1 to 65535.")
    return int(value)


def parse_url(text: str) -> SplitResult | None:
    """The parts of an address; None when it, or the port in it, is not one."""
    try:
        parts = urlsplit(text)
        return parts if parts.port is None or parts.port else None
    except ValueError:
        return None


def read_value_or_file(environ: Mapping[str, str], name: str) -> str:
    """The variable, or else the one line of the file that NAME_FILE names; which of two holds is
    not guessed."""
    value, file = environ.get(name, ""), environ.get(f"{name}_FILE")
    if not file:
        return value
    if value:
        raise SettingError(f"{name} and {name}_FILE are both set, expected one of them.")
    try:
        text = (
            Path(file).read_text(encoding="utf-8-sig").strip()
        )  # an editor's mark of the encoding is no part of a secret
        if not text or len(text.splitlines()) > 1:
            raise SettingError(
                f"{name}_FILE names a file that is empty or has several lines, expected one line."
            )
        return text
    except OSError as error:
        raise SettingError(f"{name}_FILE cannot be read: {error.strerror}.") from error
    except ValueError as error:
        raise SettingError(f"{name}_FILE names a file that is not text in UTF-8.") from error
