"""Redirect back to the page that sent a form."""

from django.http import HttpRequest, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme


def redirect_back(request: HttpRequest, default: str) -> HttpResponseRedirect:
    """To the address in the field `next` if it is of this server, else to `default`."""
    address = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(
        address, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return HttpResponseRedirect(address if ours else default)
