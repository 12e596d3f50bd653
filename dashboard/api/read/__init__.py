"""The read API: what the pages show, as JSON for programs. Keys are only ever added; `site.py` puts
it together."""
