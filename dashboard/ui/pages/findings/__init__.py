"""Findings page."""
