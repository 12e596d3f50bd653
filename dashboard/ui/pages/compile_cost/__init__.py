"""Compile cost of the fleet."""
