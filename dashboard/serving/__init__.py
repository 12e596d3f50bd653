"""Serving: deadlines, memory limits and thread lanes of requests, the same under granian and
waitress."""
