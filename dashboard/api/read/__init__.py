"""Read API: the data of the pages as JSON for programs. Keys are only ever added; `router.py`
assembles the API."""
