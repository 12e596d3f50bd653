"""The dashboard: takes reports, folds them, judges versions, alerts people, shows it all."""

__version__ = "0.1.0"
