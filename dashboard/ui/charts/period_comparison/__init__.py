"""Period comparison: the last 28 days and the previous 28 days."""
