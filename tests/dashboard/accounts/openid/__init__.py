"""An OpenID provider in a process of its own, made of Django OAuth Toolkit, and a browser that
signs in there and allows what is asked."""
