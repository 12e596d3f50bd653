"""Members of a project."""
