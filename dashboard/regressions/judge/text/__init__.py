"""Verdict text: evidence in sentences."""
