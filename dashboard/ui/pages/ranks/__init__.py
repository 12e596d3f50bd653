"""Ranks page."""
