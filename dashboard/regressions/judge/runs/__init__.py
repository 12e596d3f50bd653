"""Runs: versions that run as short jobs, one after the other, compared run against run."""
