"""Recording: from calls to windows of counts and sketches."""
