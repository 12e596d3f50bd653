"""Fleet page: presenters."""
