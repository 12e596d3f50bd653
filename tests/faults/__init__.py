"""The fault list with real processes: shortened in every test run, in full by `make faults`. Which
file tests which row is in `rows.py`."""
