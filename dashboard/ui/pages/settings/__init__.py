"""Settings pages."""
