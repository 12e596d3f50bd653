"""Accounts: users, roles and the audit log."""
