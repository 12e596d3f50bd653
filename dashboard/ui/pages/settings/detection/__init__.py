"""Settings of detection."""
