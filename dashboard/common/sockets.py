"""Sockets that a worker must let go of: those of a Redis that went away, and those that a child has from the process that forked it."""

import gc
import socket
from contextlib import suppress

from kombu.transport import TRANSPORT_ALIASES, redis, virtual
from redis import RedisError


class Channel(redis.Channel):
    """Closes its connections whether or not Redis answers: kombu's stops at the first thing that fails, and is then kept for ever, with
    its sockets, by what it would do when the process ends."""

    def close(self) -> None:
        """What was not acknowledged comes back by itself, after its visibility timeout."""
        try:
            super().close()
        except (RedisError, OSError):
            self._disconnect_pools()  # type: ignore[attr-defined]
            self._close_clients()  # type: ignore[attr-defined]
            with suppress(RedisError, OSError):
                virtual.Channel.close(self)


class Transport(redis.Transport):
    """kombu's but for its channels."""

    Channel = Channel


def channels_close() -> None:
    """From now on every connection to Redis is closed when it is lost."""
    TRANSPORT_ALIASES.update(dict.fromkeys(("redis", "rediss"), f"{__name__}:Transport"))


def inherited_close() -> None:
    """Of a child that has opened none yet: all it has are its parent's, which keeps its own; Redis would see them open for as long as
    this child lives. A connection to PostgreSQL that the parent had at that moment stays: only psycopg knows it."""
    for one in gc.get_objects():
        if isinstance(one, socket.socket):
            one.close()
