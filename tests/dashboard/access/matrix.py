"""Access matrix: one line per URL with the expected answer for each kind of caller. The tests fail
for a URL without a line."""

from __future__ import annotations

from collections.abc import Iterator

OK, LOGIN, SURE, GONE, NO, METHOD, KEY = "ok", "login", "sure", "404", "403", "405", "401"
"""Expected answers: allowed, redirected to sign-in, redirected to password confirmation, or the
status."""

COLUMNS = (
    "visitor",
    "outsider",
    "neighbour",
    "viewer",
    "operator",
    "admin",
    "late",
    "staff",
    "ing",
    "api",
    "dep",
    "foreign",
)
"""Callers: an anonymous visitor; an account without a project; an admin of another project; the
members of this project; an admin who confirmed the password an hour ago; server staff without a
membership; keys of this project that send, read and record deployments; and a read key of another
project."""

AS_VISITOR = ("closed", "revoked")
"""Callers that get the answers of an anonymous visitor: an account that was closed while signed in,
and a revoked key."""


def _row(text: str) -> dict[str, str]:
    return dict(zip(COLUMNS, text.split(), strict=True))


# fmt: off
AUDIENCES: dict[str, dict[str, str]] = {
    # visitor outsider neighbour viewer operator admin late  staff  ing   api   dep   foreign
    "everyone":         _row("ok    ok       ok        ok     ok       ok    ok    ok     ok    ok    ok    ok"),
    "people":           _row("login ok       ok        ok     ok       ok    ok    ok     login login login login"),
    "people, not sent": _row("login 405      405       405    405      405   405   405    login login login login"),
    "people, twice":    _row("login sure     sure      sure   sure     sure  sure  sure   login login login login"),
    "no second step":   _row("login 404      404       404    404      404   404   404    login login login login"),
    "never":            _row("login login    login     login  login    login login login  login login login login"),
    "project makers":   _row("login 403      ok        403    403      ok    ok    ok     login login login login"),
    "members":          _row("login 404      404       ok     ok       ok    ok    404    login login login login"),
    "operators":        _row("login 404      404       403    ok       ok    ok    404    login login login login"),
    "operators, sure":  _row("login 404      404       403    ok       ok    sure  404    login login login login"),
    "admins":           _row("login 404      404       403    403      ok    ok    404    login login login login"),
    "admins, sure":     _row("login 404      404       403    403      ok    sure  404    login login login login"),
    "staff":            _row("login 403      403       403    403      403   403   ok     login login login login"),
    "staff, not sent":  _row("login 403      403       403    403      403   403   405    login login login login"),
    "staff, never":     _row("login 403      403       403    403      403   403   403    login login login login"),
    "staff, nothing":     _row("login 403      403       403    403      403   403   404    login login login login"),
    "readers":          _row("401   404      404       ok     ok       ok    ok    404    403   ok    403   404"),
    "any reader":       _row("401   ok       ok        ok     ok       ok    ok    ok     403   ok    403   ok"),
    "gate keys":        _row("401   401      401       401    401      401   401   401    403   ok    403   ok"),
    "sending keys":     _row("401   401      401       401    401      401   401   401    ok    403   403   403"),
    "deploying keys":   _row("401   401      401       401    401      401   401   401    403   403   ok    403"),
    "failed":           _row("401   401      401       401    401      401   401   401    401   401   401   401"),
    "no provider set":  _row("404   404      404       404    404      404   404   404    404   404   404   404"),
    "nobody":           _row("405   405      405       405    405      405   405   405    405   405   405   405"),
}
# fmt: on

Line = dict[str, str]


def look(audience: str) -> Line:
    """GET only."""
    return {"GET": audience}


def act(audience: str) -> Line:
    """POST only."""
    return {"POST": audience}


def form(audience: str, sends: str = "") -> Line:
    """GET and POST."""
    return {"GET": audience, "POST": sends or audience}


LINES: dict[str, Line] = {
    # Health checks and endpoints for programs.
    "healthz": look("everyone"),
    "readyz": look("everyone"),
    "metrics": look("any reader"),
    "openapi": look("everyone"),
    "api_reference": look("everyone"),
    "api-root": look("everyone"),
    "reports": act("sending keys"),
    "otlp_metrics": act("sending keys"),
    "deployments": act("deploying keys"),
    "gate": look("gate keys"),
    "projects_list": look("any reader"),
    "models_list": look("readers"),
    "model_one": look("readers"),
    "versions_list": look("readers"),
    "series_read": look("readers"),
    "comparison_read": look("readers"),
    "findings_list": look("readers"),
    "instances_list": look("readers"),
    "verdicts_list": look("readers"),
    "verdict_one": look("readers"),
    "alerts_list": look("readers"),
    "alert_one": look("readers"),
    # Sign-in and the own account.
    "account_login": form("everyone"),
    "account_logout": form("everyone"),
    "account_inactive": look("everyone"),
    "account_signup": form("everyone"),
    "account_reauthenticate": form("people"),
    "account_change_password": form("people"),
    "account_set_password": look("people"),
    "mfa_index": form("people", "people, not sent"),
    "mfa_authenticate": form("people"),
    "mfa_reauthenticate": form("people, twice"),
    "mfa_activate_totp": form("people, twice"),
    "mfa_deactivate_totp": form("no second step"),
    "mfa_view_recovery_codes": form("no second step", "people, not sent"),
    "mfa_generate_recovery_codes": form("people, twice"),
    "mfa_download_recovery_codes": form("no second step"),
    "usersessions_list": form("people"),
    "socialaccount_login_cancelled": look("everyone"),
    "socialaccount_login_error": look("failed"),
    "socialaccount_signup": form("never"),
    "socialaccount_connections": form("people"),
    "openid_connect_login": form("no provider set"),
    "openid_connect_callback": form("no provider set"),
    "theme": act("people"),
    # Pages outside projects.
    "home": look("people"),
    "favicon": look("everyone"),
    "numbers": look("people"),
    "help": look("people"),
    "help_document": look("people"),
    "components": look("people"),
    "health_home": look("people"),
    "project_new": form("project makers"),
    "invitation": form("everyone"),
    # Pages of a project.
    **dict.fromkeys(
        (
            "health",
            "fleet",
            "fleet_json",
            "fleet_csv",
            "compile_cost",
            "compile_cost_json",
            "compile_cost_csv",
            "fleet_weeks",
            "fleet_weeks_json",
            "fleet_weeks_csv",
            "search",
            "findings",
            "findings_json",
            "findings_csv",
            "finding",
            "finding_json",
            "finding_csv",
            "model",
            "model_json",
            "model_csv",
            "model_numbers",
            "model_versions",
            "model_findings",
            "model_periods",
            "model_periods_json",
            "model_periods_csv",
            "compare",
            "compare_json",
            "compare_csv",
            "latency_map",
            "breakdown",
            "instances",
            "instances_json",
            "instances_csv",
            "instance",
            "instance_json",
            "instance_csv",
            "ranks",
            "ranks_json",
            "ranks_csv",
            "model_compiles",
            "model_startup",
            "version",
            "version_json",
            "version_csv",
            "switch",
            "alerts",
            "alerts_json",
            "alerts_csv",
            "alert",
            "alert_grades",
            "grades_json",
            "grades_csv",
            "grades_deployments_csv",
            "judging",
            "judging_try_state",
            "judging_measured",
            "rules",
            "guides",
            "setup",
            "setup_arrival",
            "channels",
            "setup_keys",
            "members",
            "keys",
            "data",
        ),
        look("members"),
    ),
    "audit": look("admins"),
    "audit_csv": look("admins"),
    # Actions in a project.
    "alert_act": act("operators"),
    "alerts_act": act("operators"),
    "baseline_set": act("operators"),
    "baseline_end": act("operators"),
    "baseline_undo": act("operators"),
    "version_budgets": act("operators"),
    "switch_make": act("operators, sure"),
    "switch_stop": act("operators"),
    "maintenance_make": act("operators"),
    "maintenance_stop": act("operators"),
    "rule_replay": act("operators"),
    "rule_replay_all": act("operators"),
    "rule_make": act("admins"),
    "rule_end": act("admins"),
    "rule_zone": act("admins"),
    "guide_save": act("admins"),
    "compile_cost_price": act("admins"),
    "fleet_view_save": act("members"),
    "fleet_view_delete": act("members"),
    "judging_save": act("admins"),
    "judging_try": act("admins"),
    "judging_measure": act("admins"),
    "channel_make": act("admins, sure"),
    "channel_act": act("admins"),
    "command_key_new": act("admins, sure"),
    "key_make": act("admins, sure"),
    "key_add": act("admins, sure"),
    "key_remove": act("admins"),
    "member_invite": act("admins, sure"),
    "member_uninvite": act("admins"),
    "member_role": act("admins, sure"),
    "member_end": act("admins, sure"),
    "member_leave": act("members"),
    "data_save": act("admins"),
    # The administration of the server.
    "admin:index": form("staff"),
    "admin:app_list": form("staff"),
    "admin:search": form("staff"),
    "admin:jsi18n": form("staff", "staff, not sent"),
    "admin:login": form("never"),
    "admin:logout": form("staff"),
    "admin:password_change": form("staff"),
    "admin:password_change_done": form("staff", "staff, not sent"),
    "admin:autocomplete": form("staff, never", "staff, not sent"),
    "admin:view_on_site": form("staff, nothing"),
    "admin:admin/(?P<url>.*)$": form("staff, nothing"),
    # Each administration model: pages are readable, list actions change rows, edit forms do not.
    "*_changelist": form("staff"),
    "*_add": form("staff, never"),
    "*_change": form("staff", "staff, never"),
    "*_delete": form("staff, never"),
    "*_history": form("staff"),
    "*/<path:object_id>/": form("staff"),
}


def line_of(name: str) -> Line | None:
    """The line of a URL; the URLs of the administration's models share one line per ending."""
    ending = next(
        (
            one
            for one in LINES
            if one.startswith("*") and name.startswith("admin:") and name.endswith(one[1:])
        ),
        name,
    )
    return LINES.get(name) or LINES.get(ending)


def expected_answers(audience: str) -> Iterator[tuple[str, str]]:
    """Each caller with its expected answer."""
    row = AUDIENCES[audience]
    # Where no password confirmation is required, "late" is the same caller as "admin".
    yield from (
        (who, answer) for who, answer in row.items() if who != "late" or answer != row["admin"]
    )
    yield from ((who, row["visitor"]) for who in AS_VISITOR)
