"""Integrations: entry points of frameworks."""
