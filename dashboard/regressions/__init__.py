"""Judges each version against its baseline."""
