"""People: users, roles, audit."""
