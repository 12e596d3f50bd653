"""ASGI application that granian serves: the WSGI application behind its front."""

# Sets Django up, before the models that the front imports.
from dashboard.wsgi import application as _wsgi

from dashboard.serving.asgi_front import AsgiFront  # isort: skip

application = AsgiFront(_wsgi)
