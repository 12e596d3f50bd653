"""Command line: `compilewatch`; no job imports this."""
