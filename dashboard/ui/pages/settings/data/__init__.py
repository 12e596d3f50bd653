"""Retention of data."""
