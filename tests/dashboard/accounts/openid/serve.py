"""Program of the provider: one person and one client with the given redirect URI. It prints its
port, then serves."""

from __future__ import annotations

import sys

from django.core.management import call_command
from django.core.wsgi import get_wsgi_application

from tests.dashboard.accounts.openid.provider import CLIENT, PASSWORD, PERSON, SECRET


def main() -> None:
    """Serves until the process is killed."""
    application = get_wsgi_application()
    from django.contrib.auth.models import User  # Django is set up only now.
    from oauth2_provider.models import get_application_model
    from waitress.server import create_server

    call_command("migrate", verbosity=0)
    User.objects.create_user(**PERSON, password=PASSWORD)
    kind = get_application_model()
    kind.objects.create(
        client_id=CLIENT,
        client_secret=SECRET,
        client_type=kind.CLIENT_CONFIDENTIAL,
        authorization_grant_type=kind.GRANT_AUTHORIZATION_CODE,
        redirect_uris=sys.argv[1],
        algorithm=kind.RS256_ALGORITHM,
    )
    server = create_server(application, host="127.0.0.1", port=0)
    print(server.effective_port, flush=True)
    server.run()


if __name__ == "__main__":
    main()
