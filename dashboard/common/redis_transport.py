"""A worker's connections to Redis, which are closed when Redis goes away; loaded only where Redis
is used."""

from contextlib import suppress
from typing import Any

from kombu.transport import redis, virtual
from redis import RedisError

from dashboard.common.redis_status import ConnectionClosed


class Channel(redis.Channel):
    """Closes its connections whether or not Redis answers: kombu's stops at the first thing that
    fails, and is then kept for ever, with its sockets, by what it would do when the process
    ends."""

    def close(self) -> None:
        """What was not acknowledged comes back by itself, after its visibility timeout."""
        try:
            super().close()
        except (RedisError, OSError):
            self._disconnect_pools()  # type: ignore[attr-defined]
            self._close_clients()  # type: ignore[attr-defined]
            with suppress(RedisError, OSError):
                virtual.Channel.close(self)

    def _connparams(self, *args: Any, **kwargs: Any) -> Any:
        """Of a connection that is closed kombu 5.7 asks what it no longer has, while a task is
        acknowledged, which ended the worker."""
        if getattr(self.connection, "client", None) is None:
            raise ConnectionClosed("the connection to Redis was closed")
        return super()._connparams(*args, **kwargs)  # type: ignore[misc]


class Transport(redis.Transport):
    """kombu's but for its channels."""

    Channel = Channel
