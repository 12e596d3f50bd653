"""Mail address validation for headers."""

from __future__ import annotations

from django.core.exceptions import ValidationError
from django.core.validators import validate_email


def mail_address_check(text: str) -> None:
    """Raises ValueError for an invalid address.

    Django accepts control characters within quotation marks. A form feed there becomes a line break
    in the header, so an attacker could add headers or text to the mail.
    """
    try:
        validate_email(text)
        text.rpartition("@")[2].encode("idna")
    except (ValidationError, UnicodeError) as error:
        raise ValueError("this is not a mail address.") from error
    if '"' in text or not text.isprintable():
        raise ValueError(
            "this is not a mail address that compilewatch supports: expected one without "
            "quotation marks and control characters."
        )
