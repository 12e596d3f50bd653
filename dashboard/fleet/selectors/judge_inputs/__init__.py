"""Selectors: minutes, processes and facts for the judge."""
