"""HTTP layer of the pages: access, paging, exports, static files."""
