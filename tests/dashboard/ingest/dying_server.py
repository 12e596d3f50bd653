"""A server process for tests that kills itself at one place: `python -m tests.dashboard.ingest.dying_server committed|inserted`.

It prints its port, then serves; `committed` is after the commit and before the answer, `inserted` is before the commit."""

import os
import signal
import sys
from typing import Any

import django


def main(place: str) -> None:
    """Serves until a report reaches the place."""
    django.setup()
    from django.core.wsgi import get_wsgi_application
    from waitress.server import create_server

    from dashboard.ingest import committer, store

    module, name = {"committed": (committer, "reports_store"), "inserted": (store, "inbox_write")}[place]
    original = getattr(module, name)

    def deadly(*args: Any) -> None:
        original(*args)
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(module, name, deadly)
    server = create_server(get_wsgi_application(), host="127.0.0.1", port=0, threads=4)
    print(server.effective_port, flush=True)
    server.run()


if __name__ == "__main__":
    main(sys.argv[1])
