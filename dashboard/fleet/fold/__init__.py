"""Fold: pure functions from acknowledged reports to facts, without Django."""
