"""Wire protocol between agent and dashboard. It imports only the standard library and itself."""
