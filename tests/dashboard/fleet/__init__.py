"""Tests of folding: what was sent is what is counted, exactly once."""
