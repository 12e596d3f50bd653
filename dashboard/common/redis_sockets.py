"""Which sockets a worker's children keep, and what closes those to a Redis that went away."""

import gc
import socket

from kombu.transport import TRANSPORT_ALIASES


def install_redis_transport() -> None:
    """From now on every connection to Redis is closed when it is lost."""
    TRANSPORT_ALIASES.update(
        dict.fromkeys(("redis", "rediss"), "dashboard.common.redis_transport:Transport")
    )


def close_inherited_sockets() -> None:
    """Of a child that has opened none yet: all it has are its parent's, which keeps its own; Redis
    would see them open for as long as this child lives. A connection to PostgreSQL that the parent
    had at that moment stays: only psycopg knows it."""
    for one in gc.get_objects():
        # Not `isinstance`, which asks the object: one that is made only when somebody asks would be
        # made here.
        if issubclass(type(one), socket.socket):
            # The close of the C type: `socket.close` fails on one that another thread was making at
            # the fork, and leaves one open that a file reads.
            socket.SocketType.close(one)
