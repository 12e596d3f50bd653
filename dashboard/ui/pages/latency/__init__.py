"""Latency panels: heat map over time and breakdown by group."""
