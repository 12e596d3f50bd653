"""Environment: the dashboard's environment variables, read and checked in one place."""
