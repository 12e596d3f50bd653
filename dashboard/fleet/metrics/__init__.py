"""What the figures of a version are and how rows add up to them: pure code that the pages and the
read API share."""
