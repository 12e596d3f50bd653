"""Selectors: instances, their states, memory, cold starts and budgets."""
