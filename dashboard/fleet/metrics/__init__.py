"""Version metrics: pure functions that add rows up to metrics, for pages and the read API."""
