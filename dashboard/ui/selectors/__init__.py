"""What the pages read across the stages, a file for each page."""
