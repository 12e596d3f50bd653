"""OpenID Connect provider in a process of its own, built on Django OAuth Toolkit, and a browser
that signs in and grants the requested access."""
