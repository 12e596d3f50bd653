"""Projects, their members and keys; the one door in front of every query."""
