"""Selectors: compilations, recompiles and compile caches."""
