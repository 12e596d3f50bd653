"""Kill switch: freezes a version or runs it eager for a limited time, on a few instances first and
then on more, and reverts automatically."""
