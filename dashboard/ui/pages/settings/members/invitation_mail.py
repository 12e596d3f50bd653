"""Invitation email. It is sent during the request of the admin, because the link is not stored and
cannot be sent later."""

from __future__ import annotations

import logging
import smtplib

from django.core.mail import EmailMessage

from dashboard.common import clock
from dashboard.projects.models import Invitation

logger = logging.getLogger(__name__)


def send_invitation_mail(*, invitation: Invitation, link: str, to: str) -> bool:
    """True if the mail server accepted the email."""
    by = invitation.made_by.get_username() if invitation.made_by else "an admin"
    project = " ".join(invitation.project.name.split())
    text = (
        f"{by} invited you to the project {project} on compilewatch as "
        f"{invitation.get_role_display().lower()}.\n\n"
        f"{link}\n\nThe link works once, until "
        f"{clock.format_timestamp(invitation.expires_at)}. If you did not expect this "
        "email, ignore it.\n"
    )
    mail = EmailMessage(
        f"Invitation to {project} on compilewatch"[:150],
        text,
        to=[to],
        headers={"Auto-Submitted": "auto-generated"},
    )
    try:
        return mail.send() == 1
    except (OSError, smtplib.SMTPException) as error:
        logger.warning("invitation %s was not emailed: %s", invitation.pk, error)
        return False
