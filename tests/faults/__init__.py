"""Fault tests with real processes: a short form in every test run, the full form by `make faults`.
`rows.py` maps each row of the fault list to its files."""
