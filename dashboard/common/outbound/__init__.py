"""Outbound HTTP: the SSRF-safe client for addresses that people enter."""
