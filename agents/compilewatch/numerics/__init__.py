"""Golden batches and shadow calls: whether what was compiled computes what eager computes. Nothing here imports torch before it is used."""
