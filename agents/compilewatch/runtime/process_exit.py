"""Exit status: how this process ends, as far as exit functions can know it."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

EXIT_ABNORMAL = 1
"""Exit code of a process that an exception ends."""


def ending_at_exit() -> dict[str, Any]:
    """Returns the ending at the interpreter's exit.

    Python stores no trace of the code passed to `sys.exit`. It stores an exception that it printed,
    and it removes `__file__` from a main file that ran to its end.
    """
    error = getattr(sys, "last_type", None)
    main = sys.modules.get("__main__")
    if error is not None:
        if hasattr(sys, "ps1") or "IPython" in sys.modules:
            return {}  # the error of an earlier line
        return (
            {"signal": "SIGINT"}
            if issubclass(error, KeyboardInterrupt)
            else {"code": EXIT_ABNORMAL}
        )
    return {"code": 0} if _is_file_program() and not hasattr(main, "__file__") else {}


def preserve_interrupt() -> None:
    """Lets Python end by SIGINT after an uncaught interrupt, as it does without the agent.

    Python sets a mark for this when it leaves the main program. Any later `exec` clears the mark,
    for example the import of a module with a dataclass in an exit function.
    """
    if getattr(sys, "last_type", None) is KeyboardInterrupt and ending_at_exit():
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")  # an exec that ends with this error sets the mark


def _is_file_program() -> bool:
    """Returns whether the main program is a file, not a module, a string or a session."""
    main = sys.modules.get("__main__")
    return (
        main is not None
        and getattr(main, "__spec__", None) is None
        and sys.argv[:1] not in ([], [""], ["-c"], ["-"])
    )


def ending_of_child() -> dict[str, Any]:
    """Returns the ending in the finalizers of a `multiprocessing` child, while the exception passes
    its first frame.
    """
    error = sys.exc_info()[1]
    trace = getattr(error, "__traceback__", None)
    if error is None or trace is None or trace.tb_frame.f_code.co_name != "_bootstrap":
        return {"code": 0}
    return {"code": exit_code(error)}


def exit_code(error: BaseException) -> int:
    """Returns the exit code of a process that this exception ends."""
    if not isinstance(error, SystemExit):
        return EXIT_ABNORMAL
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else EXIT_ABNORMAL
