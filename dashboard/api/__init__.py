"""The read API, the deploy gate and metrics."""
