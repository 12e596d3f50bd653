"""HTTP client: bounded connections, responses and TLS."""
