"""Settings of notifications."""
