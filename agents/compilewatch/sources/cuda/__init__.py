"""Sources from CUDA: GPU time, CUDA graphs and utilisation."""
