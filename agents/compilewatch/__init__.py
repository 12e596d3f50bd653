"""Watches `torch.compile` in a running job; importing this does no work and loads no torch."""

__version__ = "0.1.0"
