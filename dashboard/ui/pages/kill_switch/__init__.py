"""Kill switch page."""
