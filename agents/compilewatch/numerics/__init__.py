"""Numerics: golden batches, shadow calls, NaN checks and the eager baseline.

Golden batches and shadow calls check that compiled code computes the same values as eager. No
module here imports torch before the first use."""
