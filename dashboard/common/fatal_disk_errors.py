"""Fatal disk errors: after a lost write, later commits cannot be trusted, so the process ends."""

from __future__ import annotations

import logging
import os
import sqlite3

from django.db import OperationalError

logger = logging.getLogger(__name__)

LOST_WRITE_CODES = (
    sqlite3.SQLITE_IOERR_FSYNC,
    sqlite3.SQLITE_IOERR_DIR_FSYNC,
    sqlite3.SQLITE_IOERR_WRITE,
)


def exit_on_lost_write(error: OperationalError) -> None:
    """Ends the process if SQLite reports a failed write or sync. A full disk is a different error
    and passes.

    After a failed sync the kernel may count the pages as written. Only a restart that reads the
    file again shows its true content.
    """
    if getattr(error.__cause__, "sqlite_errorcode", None) in LOST_WRITE_CODES:
        logger.critical(
            "a write to disk was lost, so this process ends without acknowledging more reports: %s",
            error,
        )
        logging.shutdown()
        os._exit(os.EX_IOERR)
