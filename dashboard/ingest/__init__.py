"""Ingest: accepts reports and owns the rows that it locks and answers with."""
