"""Whether the process lives, and whether it can work: the two addresses that supervisors ask."""

from typing import Any

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse

from dashboard.common.http import error_answer, json_answer

_migrated: dict[str, Any] = {}


def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers; nothing else is asked."""
    return json_answer(b'{"cw":1,"status":"ok"}')


def readyz(request: HttpRequest) -> HttpResponse:
    """The database answers and has every migration."""
    try:
        waiting = _migrations_waiting()
    except DatabaseError:
        return error_answer(503, "busy", "The database does not answer.", retry_after=5)
    if waiting:
        return error_answer(503, "not_migrated", f"{waiting} migrations are not applied; run manage.py migrate.", retry_after=5)
    return json_answer(b'{"cw":1,"status":"ready"}')


def _migrations_waiting() -> int:
    """How many migrations are missing; once there are none that is not asked again."""
    name = str(connection.settings_dict["NAME"])
    if _migrated.get("database") == name:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return 0
    executor = MigrationExecutor(connection)
    waiting = len(executor.migration_plan(executor.loader.graph.leaf_nodes()))
    if not waiting:
        _migrated["database"] = name
    return waiting
