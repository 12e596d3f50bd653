"""Instrumentation: wraps the callables of a job and times their calls."""
