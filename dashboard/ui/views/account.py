"""What people set for themselves."""

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
    """Sets the theme and goes back to the page it was set from."""
    assert isinstance(request.user, User)
    try:
        user_theme_set(
            user=request.user,
            theme=request.POST.get("theme", ""),
            address=request.META.get("REMOTE_ADDR"),
        )
    except ValidationError:
        return HttpResponseBadRequest("theme must be one of system, light, dark.")
    back = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()})
    return HttpResponseRedirect(back) if ours else redirect("home")


@require_safe
@login_required
def no_password(request: HttpRequest) -> HttpResponse:
    """Where allauth leads who has no password: whoever comes from the provider gets none here,
    which would outlive their account there."""
    return render(request, "account/no_password.html", {"on": "password"})
