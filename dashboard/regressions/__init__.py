"""Regressions: compares each version with its baseline and stores the verdicts."""
