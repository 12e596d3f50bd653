"""Fleet facts: the folded contents of the reports of a fleet."""
