"""Identity: who reports, and with which configuration."""
