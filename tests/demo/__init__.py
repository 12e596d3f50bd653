"""`make demo`, as a person at a terminal meets it."""
