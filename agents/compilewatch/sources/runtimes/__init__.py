"""Sources from other runtimes: AOTInductor, TorchScript, JAX and vLLM."""
