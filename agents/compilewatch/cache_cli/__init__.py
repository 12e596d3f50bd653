"""Command line of the compile caches; no job imports this."""
