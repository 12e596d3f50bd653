"""Compare page."""
