"""Search page."""
