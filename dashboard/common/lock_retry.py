"""Lock retry: changes tables while an earlier release reads and writes them.

Each change waits for its lock in short attempts, so that other transactions can run in between.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from django.db import OperationalError, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState

logger = logging.getLogger(__name__)

LOCK_TIMEOUT_S = 0.1
"""Seconds that a change waits for the lock of its table. Every reader and writer of the table
queues behind the change for that time."""
RETRY_PAUSE_S, GIVE_UP_AFTER_S = 0.2, 900.0
"""Seconds between two attempts, and until the migration fails. A restarted migration continues
where it stopped."""


class LockTimeoutError(Exception):
    """The table stayed in use until the timeout, so its columns could not be changed."""


def retry_for_lock(
    editor: BaseDatabaseSchemaEditor, work: Sequence[str] | Callable[[], None]
) -> None:
    """Runs the work or the statements in one transaction, once the locks are free. Raises
    LockTimeoutError after `GIVE_UP_AFTER_S`."""
    began = time.monotonic()
    while True:
        try:
            with transaction.atomic(editor.connection.alias), editor.connection.cursor() as cursor:
                if editor.connection.vendor == "postgresql":
                    cursor.execute(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT_S * 1000:.0f}ms'")
                if callable(work):
                    work()
                    return
                for statement in work:
                    cursor.execute(statement)
                return
        except OperationalError as error:
            if time.monotonic() - began > GIVE_UP_AFTER_S:
                raise LockTimeoutError(
                    f"the table was in use for {GIVE_UP_AFTER_S:.0f} s; stop the workers and run "
                    "migrate again"
                ) from error
            logger.info("%s; retrying", str(error).strip().splitlines()[0])
        time.sleep(RETRY_PAUSE_S)


class AddColumn(migrations.AddField):
    """AddField for a migration that is not atomic: the change has its lock to itself, and skips an
    existing column."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if not self._column_exists(app_label, schema_editor, to_state):
            retry_for_lock(
                schema_editor,
                lambda: super(AddColumn, self).database_forwards(
                    app_label, schema_editor, from_state, to_state
                ),
            )

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        if self._column_exists(app_label, schema_editor, from_state):
            retry_for_lock(
                schema_editor,
                lambda: super(AddColumn, self).database_backwards(
                    app_label, schema_editor, from_state, to_state
                ),
            )

    def _column_exists(
        self, app_label: str, editor: BaseDatabaseSchemaEditor, state: ProjectState
    ) -> bool:
        model = state.apps.get_model(app_label, self.model_name)
        with editor.connection.cursor() as cursor:
            columns = editor.connection.introspection.get_table_description(
                cursor, model._meta.db_table
            )
        return model._meta.get_field(self.name).column in {column.name for column in columns}
