"""Golden batches of real models: those of timm and transformers with random weights, healthy and
with one thing wrong each."""
