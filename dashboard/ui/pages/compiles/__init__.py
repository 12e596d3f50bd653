"""The Compiles tab."""
