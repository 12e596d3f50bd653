"""The Startup tab."""
