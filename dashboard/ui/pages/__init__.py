"""From the facts a page read to what its template says."""
