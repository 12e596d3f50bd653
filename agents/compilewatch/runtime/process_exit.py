"""How this process ends, as far as that is certain while its exit functions run."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

ABNORMAL = 1
"""The exit code of a process that an exception ends."""


def ending_at_exit() -> dict[str, Any]:
    """At the interpreter's exit. Python keeps no trace of the code that `sys.exit` was given; an exception that it printed, it keeps, and
    from a main file that ran to its end it takes the name of the file."""
    error = getattr(sys, "last_type", None)
    main = sys.modules.get("__main__")
    if error is not None:
        if hasattr(sys, "ps1") or "IPython" in sys.modules:
            return {}  # of an earlier line
        return {"signal": "SIGINT"} if issubclass(error, KeyboardInterrupt) else {"code": ABNORMAL}
    return {"code": 0} if _ran_a_file() and not hasattr(main, "__file__") else {}


def interrupt_keep() -> None:
    """Lets Python end by SIGINT after an interrupt that nothing caught, as it does without us. Python marks that while it leaves the main
    program, and every text that is executed later clears the mark: a module with a dataclass that an exit function imports is one."""
    if getattr(sys, "last_type", None) is KeyboardInterrupt and ending_at_exit():
        with suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")  # a text that ends so sets the mark


def _ran_a_file() -> bool:
    """Whether the main program is a file, and not a module, a text or an interactive session."""
    main = sys.modules.get("__main__")
    return (
        main is not None
        and getattr(main, "__spec__", None) is None
        and sys.argv[:1] not in ([], [""], ["-c"], ["-"])
    )


def ending_of_child() -> dict[str, Any]:
    """In the finalizers of a child of `multiprocessing`, while what ends it passes through its first frame."""
    error = sys.exc_info()[1]
    trace = getattr(error, "__traceback__", None)
    if error is None or trace is None or trace.tb_frame.f_code.co_name != "_bootstrap":
        return {"code": 0}
    return {"code": exit_code(error)}


def exit_code(error: BaseException) -> int:
    """What a process ends with that this exception ends."""
    if not isinstance(error, SystemExit):
        return ABNORMAL
    if error.code is None:
        return 0
    return error.code if isinstance(error.code, int) else ABNORMAL
