"""Charts: convert rows to drawings and tables, as pure functions without Django."""
