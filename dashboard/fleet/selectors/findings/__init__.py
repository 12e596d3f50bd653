"""Selectors: findings and their states."""
