"""Presenters: convert the data of a page into the texts and values of its template."""
