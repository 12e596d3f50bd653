"""Django settings, derived from `dashboard.environment.settings`. This module does not read the
environment."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from csp.constants import NONCE, NONE, SELF

from dashboard.environment.groups import is_loopback
from dashboard.environment.settings import ROOT, env_read

ENV = env_read()
# Accent of the admin site, from light to dark; the seventh colour is the accent of the pages.
ADMIN_BLUES = [
    "#f1f5fd",
    "#dde8fb",
    "#c2d6f8",
    "#98bbf2",
    "#7eabff",
    "#5b8def",
    "#1f5bcc",
    "#1a4fb3",
    "#1a4391",
    "#1a3b74",
    "#142649",
]
# Greys of the pages: text and lines of both themes, then the background and the surface of the dark
# theme.
ADMIN_GREYS = [
    "#f6f7f9",
    "#f1f3f5",
    "#e3e6ea",
    "#bac1cb",
    "#909aa7",
    "#616975",
    "#424a54",
    "#3b424b",
    "#262b31",
    "#15181c",
    "#0d0f12",
]
ADMIN_STEPS = [str(step) for step in (50, *range(100, 1000, 100), 950)]
BASE_DIR = Path(__file__).resolve().parent

DEBUG = ENV.debug
SECRET_KEY = ENV.secret_key
KEY_PEPPER = ENV.key_pepper
ALLOWED_HOSTS = list(ENV.hosts)
BASE_URL = ENV.base_url
EMBEDDED = ENV.embedded
OUTBOUND_ALLOW = ENV.outbound_allow
APPRISE = ENV.apprise
# Django's own mail backend with a deadline; without a server, e-mail channels are unavailable.
MAIL_READY = ENV.mail is not None
if ENV.mail:
    EMAIL_HOST, EMAIL_PORT = ENV.mail.host, ENV.mail.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = ENV.mail.user, ENV.mail.password
    EMAIL_USE_TLS, EMAIL_USE_SSL = ENV.mail.tls == "starttls", ENV.mail.tls == "tls"
    DEFAULT_FROM_EMAIL = ENV.mail.sender
EMAIL_BACKEND = "dashboard.common.smtp_backend.EmailBackend"
EMAIL_TIMEOUT, EMAIL_SECONDS = 10, 30  # seconds for one step, and in total
PLAIN_HTTP = ENV.allow_http  # every page shows a warning
ALLOW_HTTP = ENV.allow_http or (EMBEDDED and is_loopback(ENV.listen))
_HTTPS = urlsplit(BASE_URL).scheme == "https"
ORIGIN = BASE_URL.removesuffix(ENV.prefix)
# Path prefix of a reverse proxy, which links, files and cookies include.
PREFIX = ENV.prefix
FORCE_SCRIPT_NAME = PREFIX or None

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "dashboard.common",
    "dashboard.accounts",
    "dashboard.projects",
    "dashboard.ingest",
    "dashboard.fleet",
    "dashboard.regressions",
    "dashboard.alerts",
    "dashboard.api",
    "dashboard.ui",
]

MIDDLEWARE = [
    "dashboard.common.log_formatters.RequestIdMiddleware",
    "dashboard.common.client_address.ClientAddressMiddleware",
    # Outermost, so that every answer has their headers, including errors and static files.
    "django.middleware.security.SecurityMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "dashboard.common.probe_hosts.ProbeHostMiddleware",
    "dashboard.common.http.ApiErrorMiddleware",
    "dashboard.common.database_unavailable.DatabaseUnavailableMiddleware",
    "dashboard.ui.http.static_files.StaticFiles",
    # Inside static files, which have their own compression; reports never pass here.
    "django.middleware.gzip.GZipMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "dashboard.accounts.session_expiry.SessionExpiryMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "dashboard.accounts.reauthentication.AnonymousReauthenticationMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

ROOT_URLCONF = "dashboard.urls"
WSGI_APPLICATION = "dashboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        # Each page folder has its templates; they come before the templates of allauth.
        "DIRS": sorted((BASE_DIR / "ui").glob("**/templates")),
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "dashboard.ui.layout.context.page_context",
            ],
        },
    }
]

_SQLITE: dict[str, Any] = {
    "ENGINE": "django.db.backends.sqlite3",
    "NAME": ENV.database.name,
    "OPTIONS": {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA "
        "synchronous=FULL; PRAGMA busy_timeout=20000;",
    },
}
_POSTGRESQL: dict[str, Any] = {
    "ENGINE": "django.db.backends.postgresql",
    "NAME": ENV.database.name,
    "USER": ENV.database.user,
    "PASSWORD": ENV.database.password,
    "HOST": ENV.database.host,
    "PORT": ENV.database.port,
    "CONN_MAX_AGE": 60,
    "CONN_HEALTH_CHECKS": True,
    "OPTIONS": {"connect_timeout": 2, **dict(ENV.database.options)},
}
DATABASES = {"default": _SQLITE if ENV.database.engine == "sqlite" else _POSTGRESQL}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["dashboard.ui.person.PersonBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "home"
ACCOUNT_LOGOUT_REDIRECT_URL = "home"
ACCOUNT_ADAPTER = "dashboard.accounts.allauth_adapters.AccountAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
# Accounts are not matched by address: a person is identified by the provider's own ID.
ACCOUNT_UNIQUE_EMAIL = False
ACCOUNT_REAUTHENTICATION_METHODS = ("password", "mfa")  # without the e-mail codes of allauth 65.22
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
ACCOUNT_RATE_LIMITS = {
    "login": "30/m/ip",
    "invitation": "60/m/ip",
    "login_failed": "10/m/ip,5/300s/key",
    "reauthenticate": "10/m/user",
    "change_password": "5/m/user",
}
ALLAUTH_RATE_LIMIT_IPV6_PREFIX = 64  # a client usually controls its whole /64 network
MFA_ADAPTER = "dashboard.accounts.allauth_adapters.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes"]
MFA_TOTP_ISSUER = "compilewatch"
SOCIALACCOUNT_ADAPTER = "dashboard.accounts.allauth_adapters.SocialAccountAdapter"
SOCIALACCOUNT_STORE_TOKENS = False
OIDC_NAME = ENV.oidc.name if ENV.oidc else ""
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {
        "OAUTH_PKCE_ENABLED": True,
        "provider_class": "dashboard.accounts.oidc_provider.Provider",
        "APPS": [
            {
                "provider_id": "sso",
                "name": ENV.oidc.name,
                "client_id": ENV.oidc.client,
                "secret": ENV.oidc.secret,
                "settings": {"server_url": ENV.oidc.url},
            }
        ]
        if ENV.oidc
        else [],
    }
}
# Rate limits of sign-ins are shared by all processes and do not need Redis, which the web process
# never contacts. Above MAX_ENTRIES Django deletes a third of all counters. Its default of 300 would
# be reached by guessing a few hundred names.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "cache_entry",
        "OPTIONS": {"MAX_ENTRIES": 100_000},
    }
}
TRUSTED_PROXIES = ENV.proxies

SESSION_COOKIE_AGE = 14 * 86400
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = _HTTPS
# Browsers accept __Host- only for the path /. Under a prefix, the path keeps the session from other
# programs on the same host.
_COOKIE_NAME_PREFIX = "" if not _HTTPS else "__Secure-" if PREFIX else "__Host-"
SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = (
    f"{_COOKIE_NAME_PREFIX}cw_{name}" for name in ("session", "csrf")
)
MESSAGE_STORAGE = "django.contrib.messages.storage.session.SessionStorage"
SESSION_COOKIE_PATH = CSRF_COOKIE_PATH = PREFIX or "/"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
CSRF_TRUSTED_ORIGINS = [ORIGIN]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if _HTTPS else None
SECURE_HSTS_SECONDS = 31536000 if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = False  # subdomains belong to their owners
SECURE_SSL_REDIRECT = False
SECURE_REFERRER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:"],
        "connect-src": [SELF],
        "font-src": [SELF],
        # A browser follows a form's redirect to the provider only if this directive allows it.
        "form-action": [
            SELF,
            *(
                [f"{urlsplit(ENV.oidc.url).scheme}://{urlsplit(ENV.oidc.url).netloc}"]
                if ENV.oidc
                else []
            ),
        ],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

UNFOLD = {
    "SITE_TITLE": "compilewatch",
    "SITE_HEADER": "compilewatch",
    "SITE_SUBHEADER": "administration of this server",
    "SITE_URL": f"{PREFIX}/",
    "THEME": "dashboard.accounts.admin_site.read_user_theme",
    "SCRIPTS": ["dashboard.accounts.admin_site.theme_script"],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "BORDER_RADIUS": "5px",
    "COLORS": {
        "primary": dict(zip(ADMIN_STEPS, ADMIN_BLUES, strict=True)),
        "base": dict(zip(ADMIN_STEPS, ADMIN_GREYS, strict=True)),
    },
    "SIDEBAR": {"show_search": False, "show_all_applications": False},
}

STATIC_URL = f"{PREFIX}/static/"
STATICFILES_DIRS = sorted((BASE_DIR / "ui").glob("**/static"))
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "dashboard.ui.http.static_finders.PackagedAssetsFinder",
]
# Served from the installed packages, so nothing needs to be collected after an upgrade.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = DEBUG

DATA_UPLOAD_MAX_MEMORY_SIZE = 1 << 20
CELERY_BROKER_URL = "memory://localhost/" if EMBEDDED else ENV.redis_url
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # no limit: a worker also works without Redis
CELERY_BROKER_TRANSPORT_OPTIONS = (
    {"polling_interval": 0.2}
    if EMBEDDED
    else {
        "visibility_timeout": 300,
        "socket_timeout": 1,
        "socket_connect_timeout": 1,
        "socket_keepalive": True,
    }
)
# Tasks of the embedded server keep their thread's connection: a new one parses the whole schema.
CELERY_DB_REUSE_MAX = 1000 if EMBEDDED else None
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_TIME_LIMIT = 300
CELERY_TASK_SOFT_TIME_LIMIT = 240
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# About ten minutes: bounds the state that a child keeps about finished processes.
CELERY_WORKER_MAX_TASKS_PER_CHILD = 2000
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
# A Redis outage must not cancel a running fold; a redelivered task finds only the remaining rows.
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False

LANGUAGE_CODE = "en"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {
            "()": "dashboard.common.log_formatters."
            + ("JsonFormatter" if ENV.log == "json" else "TextFormatter")
        }
    },
    "filters": {
        "broker": {"()": "dashboard.common.redis_status.BrokerLogFilter"},
        "sentences": {"()": "dashboard.common.log_throttle.TracebackSummaryFilter"},
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "line",
            "filters": ["broker", "sentences"],
        }
    },
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "dashboard": {"level": "INFO"},
        "apprise": {"level": "CRITICAL"},  # its lines contain addresses, which are secrets
    },
}

# Silenced checks: HSTS of subdomains, the redirect to https (done by the proxy), the length of
# secrets (checked elsewhere), and plain http if configured.
SILENCED_SYSTEM_CHECKS = [f"security.W0{number}" for number in ("05", "21", "08", "09")]
if PLAIN_HTTP and not _HTTPS:
    SILENCED_SYSTEM_CHECKS += [f"security.W0{number}" for number in ("04", "12", "16")]
REPOSITORY = ROOT
