"""Selectors: the minutes, processes and facts that the judge reads."""
