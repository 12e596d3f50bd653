"""`manage.py web` refuses the embedded mode, where only one process may write."""

import pytest
from django.core.management import CommandError, call_command


def test_the_embedded_mode_is_served_otherwise(settings: object) -> None:
    settings.EMBEDDED = True  # type: ignore[attr-defined]
    with pytest.raises(CommandError, match=r"manage\.py serve"):
        call_command("web")
