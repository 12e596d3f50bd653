"""Health page."""
