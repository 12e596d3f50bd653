"""Demo: a small simulated fleet for `make demo`. The demo knows only the wire format and HTTP."""
