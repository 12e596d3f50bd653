"""Server process for tests that kills itself at a named place: `python -m
tests.dashboard.ingest.dying_server web_committed`. It prints its port, then serves."""

import sys

import django
from django.conf import settings

from tests.dashboard.crashes import Nth


def main(place: str) -> None:
    """Serves until a report reaches the place."""
    django.setup()
    settings.CRASH = Nth(f"{place}:1")
    from waitress.server import create_server

    from dashboard.wsgi import application

    server = create_server(application, host="127.0.0.1", port=0, threads=4)
    print(server.effective_port, flush=True)
    server.run()


if __name__ == "__main__":
    main(sys.argv[1])
