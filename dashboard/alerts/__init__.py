"""Alerts and their deliveries."""
