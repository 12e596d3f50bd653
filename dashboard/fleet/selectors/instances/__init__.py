"""Selectors: instances with their states, memory, cold starts and budgets."""
