"""Sources from the host: memory and its growth."""
