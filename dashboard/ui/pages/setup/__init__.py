"""Setup page."""
