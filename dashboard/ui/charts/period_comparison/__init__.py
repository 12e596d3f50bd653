"""Period comparison: the last 28 days against the 28 days before."""
