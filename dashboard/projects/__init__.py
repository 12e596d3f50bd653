"""Projects, their members and keys, and the access check of every query."""
