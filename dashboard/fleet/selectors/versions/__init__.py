"""Selectors: versions, their traffic and their metrics over time."""
