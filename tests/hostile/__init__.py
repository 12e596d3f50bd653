"""Everything that a network, a proxy, a broken agent or a bad person may send to the report
endpoint, over real sockets."""
