"""Account settings of a person."""

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseRedirect
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.models import User
from dashboard.accounts.services import user_theme_set


@require_POST
@login_required
def theme(request: HttpRequest) -> HttpResponse:
    """Sets the theme and redirects to the previous page."""
    assert isinstance(request.user, User)
    try:
        user_theme_set(
            user=request.user,
            theme=request.POST.get("theme", ""),
            address=request.META.get("REMOTE_ADDR"),
        )
    except ValidationError:
        return HttpResponseBadRequest("theme must be system, light or dark.")
    back = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return HttpResponseRedirect(back) if ours else redirect("home")


@require_safe
@login_required
def no_password(request: HttpRequest) -> HttpResponse:
    """Target of allauth for people without a password. People who sign in with the provider get no
    password here, because it would outlive their account at the provider."""
    return render(request, "account/no_password.html", {"on": "password"})
