"""Linters of the project's own rules; `make check` runs them."""
