"""Period comparison page."""
