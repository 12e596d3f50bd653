"""A mail address as it may stand in a header."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email


def mail_address_check(text: str) -> None:
    """Raises ValueError for what is none. Within quotation marks Django lets control characters
    through, and a form feed there becomes a line break of the header: what follows it would be a
    header, or the text of the mail."""
    try:
        validate_email(text)
        text.rpartition("@")[2].encode("idna")
    except (ValidationError, UnicodeError) as error:
        raise ValueError("this is no mail address.") from error
    if '"' in text or not text.isprintable():
        raise ValueError(
            "this is no mail address that this server writes to: expected one without "
            "quotation marks and control characters."
        )
