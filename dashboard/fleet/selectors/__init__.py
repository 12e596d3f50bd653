"""Selectors: queries of the fleet facts for other packages, one file per page or question."""
