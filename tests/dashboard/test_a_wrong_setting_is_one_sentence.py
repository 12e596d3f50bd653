"""A missing or wrong setting is one sentence that names the variable, in every program."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.environment.settings import ROOT, SettingError, env_read

FULL = {
    "COMPILEWATCH_MODE": "full",
    "COMPILEWATCH_DATABASE_URL": "postgresql://cw:p%40ss@db:5432/cw",
    "COMPILEWATCH_REDIS_URL": "redis://redis:6379/0",
    "COMPILEWATCH_HOSTS": "cw.example.com, localhost",
    "COMPILEWATCH_BASE_URL": "https://cw.example.com/",
    "COMPILEWATCH_SECRET_KEY": "s" * 32,
    "COMPILEWATCH_KEY_PEPPER": "p" * 32,
    "COMPILEWATCH_OUTBOUND_ALLOW": "jenkins.internal:8080, [::1]:9000",
}


def test_the_full_mode_reads_its_settings() -> None:
    env = env_read(FULL)
    assert (env.database.password, env.database.host, env.database.port, env.database.name) == (
        "p@ss",
        "db",
        "5432",
        "cw",
    )
    assert (env.hosts, env.base_url) == (("cw.example.com", "localhost"), "https://cw.example.com")
    assert env.outbound_allow == ("jenkins.internal:8080", "[::1]:9000")


def test_options_in_the_database_url_are_applied() -> None:
    env = env_read(
        {
            **FULL,
            "COMPILEWATCH_DATABASE_URL": "postgresql://db/cw?sslmode=verify-full&sslrootcert=%2Frun%2Fca.pem",
        }
    )
    assert dict(env.database.options) == {"sslmode": "verify-full", "sslrootcert": "/run/ca.pem"}
    settings = {**FULL, "COMPILEWATCH_DATABASE_URL": "postgresql://db/cw?sslmode=verify-full"}
    words = [
        sys.executable,
        "-c",
        "from dashboard.settings import DATABASES; "
        "print(DATABASES['default']['OPTIONS']['sslmode'])",
    ]
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    assert (
        subprocess.run(
            words, cwd=ROOT, env=kept | settings, capture_output=True, text=True, timeout=120
        ).stdout
        == "verify-full\n"
    )


SECRETS = (
    "COMPILEWATCH_DATABASE_URL",
    "COMPILEWATCH_REDIS_URL",
    "COMPILEWATCH_SECRET_KEY",
    "COMPILEWATCH_KEY_PEPPER",
)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_may_come_from_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(FULL[name] + "\n")
    assert env_read({**FULL, name: "", f"{name}_FILE": str(file)}) == env_read(FULL)
    file.write_bytes(b"\xff\xfe\x80")
    with pytest.raises(SettingError, match=rf"^{name}_FILE [^\n]+\.$"):
        env_read({**FULL, name: "", f"{name}_FILE": str(file)})


@pytest.mark.parametrize(
    ("text", "said"), [("", "empty"), ("s" * 40 + "\n" + "t" * 40, "several lines")]
)
def test_a_secret_file_has_one_line(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(text)
    with pytest.raises(SettingError, match=f"COMPILEWATCH_SECRET_KEY_FILE .*{said}"):
        env_read({**FULL, "COMPILEWATCH_SECRET_KEY": "", "COMPILEWATCH_SECRET_KEY_FILE": str(file)})


def test_a_byte_order_mark_is_no_part_of_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("s" * 32, encoding="utf-8-sig")
    assert (
        env_read(
            {**FULL, "COMPILEWATCH_SECRET_KEY": "", "COMPILEWATCH_SECRET_KEY_FILE": str(file)}
        ).secret_key
        == "s" * 32
    )


@pytest.mark.parametrize("name", SECRETS)
def test_a_value_and_a_file_for_one_secret_are_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=f"^{name} and {name}_FILE are both set"):
        env_read({**FULL, f"{name}_FILE": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (" redis://redis:6379/0\n", "redis://redis:6379/0"),
        ("rediss://redis:6380/0", "rediss://redis:6380/0?ssl_cert_reqs=required"),
        (
            "rediss://redis/0?ssl_ca_certs=/run/ca.pem",
            "rediss://redis/0?ssl_ca_certs=%2Frun%2Fca.pem&ssl_cert_reqs=required",
        ),
        ("rediss://redis/0?ssl_cert_reqs=none", "rediss://redis/0?ssl_cert_reqs=none"),
    ],
)
def test_the_certificate_of_redis_is_verified_by_default(given: str, read: str) -> None:
    assert env_read({**FULL, "COMPILEWATCH_REDIS_URL": given}).redis_url == read


@pytest.mark.parametrize("name", ["FROM", "USER", "PASSWORD", "PORT"])
def test_mail_settings_without_a_server_are_an_error(name: str) -> None:
    with pytest.raises(
        SettingError,
        match=f"^COMPILEWATCH_EMAIL_HOST is missing although COMPILEWATCH_EMAIL_{name} is set",
    ):
        env_read({**FULL, f"COMPILEWATCH_EMAIL_{name}": "25"})


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:8000", "http://localhost", "http://[::1]:8000"]
)
def test_plain_http_is_for_this_machine_or_needs_a_setting(address: str) -> None:
    hosts = {"COMPILEWATCH_HOSTS": "127.0.0.1, localhost, [::1], cw.example.com"}
    assert env_read({**FULL, **hosts, "COMPILEWATCH_BASE_URL": address}).base_url == address
    asked_for = {"COMPILEWATCH_BASE_URL": "http://cw.example.com", "COMPILEWATCH_ALLOW_HTTP": "1"}
    assert env_read({**FULL, **hosts, **asked_for}).allow_http


def test_the_embedded_mode_needs_no_settings_and_keeps_its_secrets(tmp_path: Path) -> None:
    first, second = (env_read({"COMPILEWATCH_DATA": str(tmp_path)}) for _ in range(2))
    assert first == second
    assert (tmp_path / "secret_key.txt").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("listen", "url", "host"),
    [
        ("0.0.0.0", "http://127.0.0.1:8000", "127.0.0.1"),
        ("::", "http://[::1]:8000", "[::1]"),
        ("192.0.2.7", "http://192.0.2.7:8000", "192.0.2.7"),
        ("2001:db8::7", "http://[2001:db8::7]:8000", "[2001:db8::7]"),
    ],
)
def test_the_embedded_mode_links_to_its_listening_address(
    tmp_path: Path, listen: str, url: str, host: str
) -> None:
    env = env_read({"COMPILEWATCH_DATA": str(tmp_path), "COMPILEWATCH_LISTEN": listen})
    assert env.base_url == url and host in env.hosts and len(set(env.hosts)) == len(env.hosts)


@pytest.mark.parametrize("hosts", ["CW.example.com", ".example.com", "*", "localhost, .com"])
def test_the_host_name_in_links_is_served(hosts: str, tmp_path: Path) -> None:
    assert env_read({**FULL, "COMPILEWATCH_HOSTS": hosts})
    alone = {"COMPILEWATCH_DATA": str(tmp_path), "COMPILEWATCH_HOSTS": hosts}
    assert env_read(alone).base_url == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("address", "asked"),
    [
        ("https://[2001:0db8::7]:8443/tools", "[2001:db8::7]"),
        ("https://BÜCHER.example", "xn--bcher-kva.example"),
        ("https://cw.example.com.", "cw.example.com"),
    ],
)
def test_a_host_name_is_matched_as_a_browser_sends_it(
    address: str, asked: str, tmp_path: Path
) -> None:
    given = {"COMPILEWATCH_DATA": str(tmp_path), "COMPILEWATCH_BASE_URL": address}
    assert asked in env_read(given).hosts
    assert env_read({**given, "COMPILEWATCH_HOSTS": asked}).hosts == (asked,)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPILEWATCH_MODE", "half"),
        ("COMPILEWATCH_DATABASE_URL", ""),
        ("COMPILEWATCH_DATABASE_URL", "mysql://db/cw"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://db:port/cw"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://db:99999/cw"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://[db/cw"),
        ("COMPILEWATCH_DATABASE_URL", "sqlite:///var/cw.sqlite3"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://cw:pa/ss@db/cw"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://db/cw?sslmod=require"),
        ("COMPILEWATCH_DATABASE_URL", "postgresql://db/cw?sslmode=yes"),
        ("COMPILEWATCH_REDIS_URL", ""),
        ("COMPILEWATCH_REDIS_URL", "redis://redis:port/0"),
        ("COMPILEWATCH_REDIS_URL", "redis://redis:6379/abc"),
        ("COMPILEWATCH_HOSTS", " , "),
        ("COMPILEWATCH_HOSTS", "https://cw.example.com"),
        ("COMPILEWATCH_HOSTS", "cw.example.com, localhost:8000"),
        ("COMPILEWATCH_HOSTS", "cw.example.com localhost"),
        ("COMPILEWATCH_HOSTS", "::1"),
        (
            "COMPILEWATCH_HOSTS",
            "localhost, example.com, w.example.com",
        ),  # links in messages name cw.example.com
        ("COMPILEWATCH_BASE_URL", ""),
        ("COMPILEWATCH_BASE_URL", "cw.example.com"),
        ("COMPILEWATCH_BASE_URL", "https://[cw"),
        (
            "COMPILEWATCH_BASE_URL",
            "http://cw.example.com",
        ),  # and COMPILEWATCH_ALLOW_HTTP is not set
        ("COMPILEWATCH_REDIS_URL", "redis://redis:6379/0?garbage=1"),
        ("COMPILEWATCH_REDIS_URL", "redis://redis:6379/0?ssl_cert_reqs=none"),
        ("COMPILEWATCH_REDIS_URL", "rediss://redis:6379/0?ssl_cert_reqs=perhaps"),
        ("COMPILEWATCH_CONCURRENCY", "many"),
        ("COMPILEWATCH_CONCURRENCY", "-3"),
        ("COMPILEWATCH_CONCURRENCY", "0"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com\n"),
        ("COMPILEWATCH_BASE_URL", "https://c\tw.example.com"),
        ("COMPILEWATCH_BASE_URL", "https://cw example.com"),
        ("COMPILEWATCH_BASE_URL", "https://.."),
        ("COMPILEWATCH_BASE_URL", "https://.example.com"),
        ("COMPILEWATCH_BASE_URL", "https://ada:secret@cw.example.com"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com/?x=1"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com//tools"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com/t%C3%B6ols"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com/../tools"),
        ("COMPILEWATCH_BASE_URL", "https://cw.example.com/api/compilewatch"),
        ("COMPILEWATCH_LISTEN", "[::1]"),
        ("COMPILEWATCH_LISTEN", "http://0.0.0.0"),
        ("COMPILEWATCH_PORT", "0"),
        ("COMPILEWATCH_PORT", "http"),
        ("COMPILEWATCH_PORT", "8" * 5000),
        ("COMPILEWATCH_SECRET_KEY", "s" * 31),
        ("COMPILEWATCH_KEY_PEPPER", ""),
        ("COMPILEWATCH_KEY_PEPPER", "s" * 32),  # the key that signs sessions
        ("COMPILEWATCH_TRUSTED_PROXIES", "-1"),
        ("COMPILEWATCH_TRUSTED_PROXIES", "0109999"),
        ("COMPILEWATCH_ALLOW_HTTP", "yes"),
        ("COMPILEWATCH_OUTBOUND_ALLOW", "jenkins"),
        ("COMPILEWATCH_OUTBOUND_ALLOW", "jenkins:99999"),
        ("COMPILEWATCH_OUTBOUND_ALLOW", "https://jenkins:443"),
    ],
)
def test_the_sentence_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=rf"^{name} [^\n]+\.$"):
        env_read({**FULL, name: value})


@pytest.mark.parametrize(
    "program",
    [
        ["celery", "-A", "dashboard.celery", "worker"],
        ["gunicorn", "-b", "127.0.0.1:0", "dashboard.wsgi"],
    ],
)
def test_every_program_prints_the_sentence_and_exits(program: list[str]) -> None:
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith("COMPILEWATCH_")
    }
    command = [str(Path(sys.executable).parent / program[0]), *program[1:]]
    run = subprocess.run(
        command,
        cwd=ROOT,
        env={**kept, **FULL, "COMPILEWATCH_DATABASE_URL": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 3
    assert "compilewatch cannot start: COMPILEWATCH_DATABASE_URL is missing" in run.stderr
    assert "Traceback" not in run.stderr


MAIL = {"COMPILEWATCH_EMAIL_HOST": "mail.example.com", "COMPILEWATCH_EMAIL_FROM": "cw@example.com"}


def test_mail_is_off_without_a_server_and_uses_tls_with_one() -> None:
    assert env_read(FULL).mail is None
    mail = env_read({**FULL, **MAIL}).mail
    assert mail
    assert (mail.host, mail.port, mail.tls, mail.sender) == (
        "mail.example.com",
        587,
        "starttls",
        "cw@example.com",
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("COMPILEWATCH_EMAIL_HOST", ""),
        ("COMPILEWATCH_EMAIL_HOST", "smtp://mail.example.com:25"),
        ("COMPILEWATCH_EMAIL_FROM", ""),
        ("COMPILEWATCH_EMAIL_FROM", "not an address"),
        ("COMPILEWATCH_EMAIL_FROM", "a@b\nBcc: c@d"),
        ("COMPILEWATCH_EMAIL_TLS", "ssl"),
        ("COMPILEWATCH_EMAIL_PORT", "0"),
        ("COMPILEWATCH_EMAIL_USER", "cw"),
        ("COMPILEWATCH_EMAIL_PASSWORD_FILE", "/no/such/file"),
    ],
)
def test_a_wrong_mail_setting_is_named(name: str, value: str) -> None:
    with pytest.raises(SettingError, match=name):
        env_read({**FULL, **MAIL, name: value})


def test_a_password_is_not_sent_over_an_unencrypted_connection() -> None:
    signed = {"COMPILEWATCH_EMAIL_USER": "cw", "COMPILEWATCH_EMAIL_PASSWORD": "secret"}
    with pytest.raises(SettingError, match="COMPILEWATCH_EMAIL_TLS"):
        env_read({**FULL, **MAIL, **signed, "COMPILEWATCH_EMAIL_TLS": "none"})
