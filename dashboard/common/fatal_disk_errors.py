"""A disk that could not keep what was written: what a later commit would say cannot be believed, so
the process ends."""

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
    """Ends the process if SQLite says that a write or a sync failed; a full disk is something else,
    and passes.

    After a failed sync the kernel may count the pages as written: only a start that reads the file
    anew knows what is in it."""
    if getattr(error.__cause__, "sqlite_errorcode", None) in LOST_WRITE_CODES:
        logger.critical(
            "the disk did not keep what was written, so this process ends and acknowledges "
            "nothing more: %s",
            error,
        )
        logging.shutdown()
        os._exit(os.EX_IOERR)
