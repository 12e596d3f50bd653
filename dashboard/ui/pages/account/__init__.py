"""Accounts, invitations and projects."""
