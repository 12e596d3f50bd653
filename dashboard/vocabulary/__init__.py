"""Vocabulary: names of metrics, reasons and verdicts for sentences, pages and notifications."""
