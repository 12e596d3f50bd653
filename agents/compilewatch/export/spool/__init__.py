"""Spool: closed windows on disk until they are acknowledged."""
