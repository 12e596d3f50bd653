"""Runbooks of models."""
