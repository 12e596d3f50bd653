"""A version: data that its tabs share, its old address, JSON and CSV."""
