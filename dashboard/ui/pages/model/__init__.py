"""Model page."""
