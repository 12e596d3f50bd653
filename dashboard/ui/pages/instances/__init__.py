"""Instances page."""
