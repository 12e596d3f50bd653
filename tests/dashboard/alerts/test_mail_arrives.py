"""E-mail through Django's own backend and a real connection: the received mail, and the handling of
refusals."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import Settings

from dashboard.alerts.models import AlertEvent, Channel, Delivery
from dashboard.alerts.services import alerts_sync, channel_create, channel_test, deliveries_send
from dashboard.alerts.services.deliver import LEASE
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.mail_server import MailStandIn, mail_server

pytestmark = pytest.mark.django_db
HOSTILE = "2026\r\nBcc: everyone@example.com\r\n\r\n.\r\nMAIL FROM:<x@y>\u202e\x00"


@pytest.fixture
def mail(settings: Settings) -> Iterator[MailStandIn]:
    with mail_server() as server:
        settings.EMAIL_BACKEND = "dashboard.common.smtp_backend.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_USE_TLS = (
            "127.0.0.1",
            server.port,
            False,
        )
        settings.DEFAULT_FROM_EMAIL, settings.MAIL_READY = "compilewatch@example.com", True
        yield server


@pytest.fixture
def box(project: Project, mail: MailStandIn, time: Time) -> Channel:
    return channel_create(
        project=project,
        kind="email",
        name="on call",
        address="oncall@example.com",
        actor_name="tests",
    )


def test_a_mail_has_the_alert_and_the_runbook_and_the_end_is_in_the_same_thread(
    fleet: Fleet, old: Deployment, new: Deployment, box: Channel, mail: MailStandIn, time: Time
) -> None:
    fleet.say(new, "roll_back", "p50 rose by 31%.", baseline=old)
    alerts_sync()
    deliveries_send()
    time.go(60)
    fleet.say(new, "healthy", "As fast as before.", baseline=old)
    alerts_sync()
    deliveries_send()
    opened, over = mail.mails
    assert opened["Subject"] == "ROLL BACK A-1: ranker 2026.11.3 against 2026.11.2"
    assert (opened["To"], opened["From"]) == ("oncall@example.com", "compilewatch@example.com")
    text = opened.get_content()
    for said in (
        "p50 rose by 31%.",
        "- p50, forward: +31%".replace("\u00a0", " "),
        "A-1 in prod, project",
        "Alert: http",
        "/alerts/1/",
    ):
        assert said in text
    assert over["Subject"] == "Resolved: A-1 ranker 2026.11.3 against 2026.11.2"
    assert over["References"] == opened["References"]
    assert over["Message-ID"] != opened["Message-ID"]
    assert Delivery.objects.get(kind="opened").message_id in str(opened["Message-ID"])
    assert AlertEvent.objects.filter(kind="delivered", text="E-mail on call").count() == 2


def test_names_from_users_make_no_headers_and_no_commands(
    fleet: Fleet, old: Deployment, box: Channel, mail: MailStandIn
) -> None:
    fleet.say(
        fleet.deploy(HOSTILE[:60].replace("\x00", "")), "roll_back", HOSTILE.replace("\x00", "")
    )
    alerts_sync()
    assert deliveries_send() == 1
    [only] = mail.mails
    assert only["Bcc"] is None
    assert mail.to == ["rcpt TO:<oncall@example.com>"]
    assert "\nBcc:" not in only.get_content()


@pytest.mark.parametrize(
    ("command", "answer", "state", "enabled"),
    [
        ("RCPT", "550 no such user", "dead", False),
        ("RCPT", "552 mailbox full", "dead", True),
        ("RCPT", "450 try later", "waiting", True),
        ("MAIL", "530 who are you", "waiting", True),
        ("DATA", "554 looks like spam", "dead", True),
        ("DATA", "451 try later", "waiting", True),
    ],
)
def test_a_refusal_of_the_server_is_understood(
    command: str, answer: str, state: str, enabled: bool, box: Channel, mail: MailStandIn
) -> None:
    mail.answers = {command: answer}
    delivery = channel_test(channel=box, actor_name="tests")
    deliveries_send()
    delivery.refresh_from_db()
    box.refresh_from_db()
    assert (delivery.state, delivery.last_status, box.enabled) == (state, int(answer[:3]), enabled)
    assert answer[4:] in delivery.last_answer


def test_a_server_that_hangs_up_or_is_down_is_retried(
    box: Channel, mail: MailStandIn, time: Time, settings: Settings
) -> None:
    delivery = channel_test(channel=box, actor_name="tests")
    mail.broken = True
    deliveries_send()
    settings.EMAIL_PORT = 1
    time.go(10)
    deliveries_send()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 2)
    assert delivery.last_answer.startswith("The mail server was unreachable")
    mail.broken, settings.EMAIL_PORT = False, mail.port
    time.go(400)
    assert deliveries_send() == 1


@pytest.mark.parametrize("slow", ["HELLO", "TLS", "MAIL", "DATA"])
def test_a_server_that_answers_a_byte_at_a_time_is_hung_up_on(
    slow: str, box: Channel, mail: MailStandIn, settings: Settings
) -> None:
    assert settings.EMAIL_SECONDS == 30 < LEASE.total_seconds()
    settings.EMAIL_SECONDS, settings.EMAIL_USE_SSL, mail.slow = 0.3, slow == "TLS", slow
    delivery = channel_test(channel=box, actor_name="tests")
    deliveries_send()
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 1)
    assert mail.hung_up.get(timeout=10) == slow


def test_an_accepted_message_is_delivered_even_if_quit_is_slow(
    box: Channel, mail: MailStandIn, settings: Settings
) -> None:
    settings.EMAIL_SECONDS, mail.slow = 0.3, "QUIT"
    channel_test(channel=box, actor_name="tests")
    assert (deliveries_send(), len(mail.mails)) == (1, 1)
    assert mail.hung_up.get(timeout=10) == "QUIT"


@pytest.mark.parametrize(
    "address", ["", "oncall", "a@b, c@d", "a@example.com\nBcc: x@y", "https://example.com"]
)
def test_only_a_mail_address_is_accepted(address: str, project: Project, mail: MailStandIn) -> None:
    with pytest.raises(ValueError, match="address: This is not a mail address"):
        channel_create(project=project, kind="email", name="x", address=address, actor_name="tests")


def test_without_a_mail_server_there_is_no_mail_channel(
    project: Project, settings: Settings
) -> None:
    settings.MAIL_READY = False
    with pytest.raises(ValueError, match="COMPILEWATCH_EMAIL_HOST"):
        channel_create(
            project=project, kind="email", name="x", address="a@example.com", actor_name="tests"
        )
