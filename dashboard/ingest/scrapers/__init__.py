"""Scrapers: read the /metrics of engines without an agent and turn them into ordinary reports."""
