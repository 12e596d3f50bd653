"""Redis sockets of worker children: which sockets a child closes, and the transport that closes
lost connections."""

import gc
import socket

from kombu.transport import TRANSPORT_ALIASES


def install_redis_transport() -> None:
    """Installs a transport that closes every lost connection to Redis."""
    TRANSPORT_ALIASES.update(
        dict.fromkeys(("redis", "rediss"), "dashboard.common.redis_transport:Transport")
    )


def close_inherited_sockets() -> None:
    """Closes the sockets of a new child that has opened none of its own.

    All its sockets are copies of its parent's, which keeps them open. Without this, Redis would
    count the copies as open while the child lives. A PostgreSQL connection of the parent stays
    open, because only psycopg holds it.
    """
    for one in gc.get_objects():
        # `isinstance` would read `__class__` of the object, and a lazy object would be created
        # here.
        if issubclass(type(one), socket.socket):
            # `socket.close` fails on a socket that another thread was creating at the fork, and
            # keeps a socket open that a file reads. The C type's close does neither.
            socket.SocketType.close(one)
