"""Foundations of every stage: clock, errors, job slots, outbound HTTP client."""
