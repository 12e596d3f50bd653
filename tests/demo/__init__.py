"""`make demo`, as a person runs it in a terminal."""
