"""What other stages may read of the fleet, a file for each page or question."""
