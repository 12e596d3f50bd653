"""Engines without an agent: their /metrics are read and become reports, which take the way of every
other report."""
