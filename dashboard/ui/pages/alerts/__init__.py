"""Alert pages: presenters."""
