"""Data of the pages across the stages, one file for each page."""
