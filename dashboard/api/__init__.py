"""HTTP API: read API, deploy gate and Prometheus metrics."""
