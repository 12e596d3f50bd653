"""Runtime services: errors, waits, private files, and how a process ends."""
