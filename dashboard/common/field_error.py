"""Field error: an invalid input, with the name of its field."""


class FieldError(ValueError):
    """An input that is refused. `field` is the name of the field, empty if no single field is
    invalid; `reason` states the expected value. The text has both, such as `note: too long.`"""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}" if field else reason)
        self.field, self.reason = field, reason

    @property
    def sentence(self) -> str:
        """The reason with an upper-case first letter, for a page that shows it at the field."""
        return self.reason[:1].upper() + self.reason[1:]
