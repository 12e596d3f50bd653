"""Version page: presenters."""
