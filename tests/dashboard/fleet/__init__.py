"""Tests of folding: each report is counted exactly once."""
