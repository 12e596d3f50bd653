"""Dashboard: receives reports, folds them, judges versions, alerts people and serves the pages."""

__version__ = "0.1.0"
