"""A small simulated fleet for `make demo`: it knows the wire and HTTP, nothing of the dashboard
behind them."""
