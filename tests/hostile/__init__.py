"""Hostile input: requests of networks, proxies, broken agents or attackers to the report endpoint,
over real sockets."""
