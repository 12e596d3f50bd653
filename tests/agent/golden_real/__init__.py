"""Golden batches of real models: models of timm and transformers with random weights, healthy and
with one fault each."""
