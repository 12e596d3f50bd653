"""Page layout: what every page shares."""
