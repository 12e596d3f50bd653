"""Account settings of a person."""

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from dashboard.accounts.models import User
from dashboard.accounts.services import user_theme_set
from dashboard.ui.http.return_address import redirect_back


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
    return redirect_back(request, reverse("home"))


@require_safe
@login_required
def no_password(request: HttpRequest) -> HttpResponse:
    """Target of allauth for people without a password. People who sign in with the provider get no
    password here, because it would outlive their account at the provider."""
    return render(request, "account/no_password.html", {"on": "password"})
