"""Selectors: versions with their traffic and their metrics over time."""
