"""The protocol between agent and dashboard; it imports the standard library and itself, nothing else."""
