"""Price of a GPU-hour: an optional setting of a project, for the compile cost."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.models import Project

SETTING = "gpu_hour_price"
MAX_PRICE = 10_000.0


def read_gpu_price(settings: Mapping[str, Any]) -> float | None:
    """The price in the project's settings; None if there is none or it is invalid."""
    price = settings.get(SETTING)
    return float(price) if price is not None and _is_price(price) else None


def gpu_price_set(
    *, project: Project, price: float | None, actor: User, address: str | None = None
) -> bool:
    """Sets the price; None removes it. Returns whether it changed; raises FieldError."""
    if price is not None and not _is_price(price):
        raise FieldError("price", f"expected more than 0, at most {MAX_PRICE:,.0f}.")
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = read_gpu_price(stored.settings)
        if before == price:
            return False
        rest = {name: value for name, value in stored.settings.items() if name != SETTING}
        stored.settings = rest if price is None else rest | {SETTING: price}
        stored.save(update_fields=["settings"])
        audit_write(
            action="gpu_price.set",
            subject="price of a GPU-hour",
            project_id=project.pk,
            actor=actor,
            before={SETTING: before},
            after={SETTING: price},
            address=address,
        )
    return True


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and 0 < value <= MAX_PRICE
    )
