"""Vocabulary: what metrics, reasons and verdicts are called, for sentences, pages and messages."""
