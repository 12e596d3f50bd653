"""Selectors: findings."""
