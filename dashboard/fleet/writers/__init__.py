"""The parts of the store: one file per kind of row that facts become."""
