"""Settings of the provider. The environment names its database file and contains its key."""

from __future__ import annotations

import os

SECRET_KEY = "of the provider"
ALLOWED_HOSTS = ["localhost"]
ROOT_URLCONF = "tests.dashboard.accounts.openid.urls"
LOGIN_URL = "/login/"
USE_TZ = True
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DATABASES = {
    "default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["OPENID_DATABASE"]}
}
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "oauth2_provider",
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
]
LOGIN = (
    '<form method="post">{% csrf_token %}<input type="hidden" name="next" value="{{ next '
    '}}">{{ form }}</form>'
)
LOADERS = [
    ("django.template.loaders.locmem.Loader", {"registration/login.html": LOGIN}),
    "django.template.loaders.app_directories.Loader",
]
CONTEXT = [
    "django.template.context_processors.request",
    "django.contrib.auth.context_processors.auth",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "OPTIONS": {"loaders": LOADERS, "context_processors": CONTEXT},
    }
]
OAUTH2_PROVIDER = {
    "OIDC_ENABLED": True,
    "OIDC_RSA_PRIVATE_KEY": os.environ["OPENID_KEY"],
    "SCOPES": {"openid": "who you are", "profile": "your name", "email": "your address"},
    "OAUTH2_VALIDATOR_CLASS": "tests.dashboard.accounts.openid.claims.Claims",
}
