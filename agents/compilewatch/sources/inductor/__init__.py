"""Sources from Inductor: cache lookups, cache keys and kernels."""
