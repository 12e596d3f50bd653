"""Facts: what the reports of a fleet say, folded."""
