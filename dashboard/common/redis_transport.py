"""Redis transport of a worker: closes connections when Redis fails. Loaded only where Redis is
used."""

from contextlib import suppress
from typing import Any

from kombu.transport import redis, virtual
from redis import RedisError

from dashboard.common.redis_status import ConnectionClosed


class Channel(redis.Channel):
    """Channel that closes its connections even if Redis does not answer.

    The close method of kombu stops at the first error. An exit handler then keeps the channel and
    its sockets until the process ends.
    """

    def close(self) -> None:
        """Closes the channel. Redis redelivers unacknowledged tasks after their visibility
        timeout."""
        try:
            super().close()
        except (RedisError, OSError):
            self._disconnect_pools()  # type: ignore[attr-defined]
            self._close_clients()  # type: ignore[attr-defined]
            with suppress(RedisError, OSError):
                virtual.Channel.close(self)

    def _connparams(self, *args: Any, **kwargs: Any) -> Any:
        """Connection parameters. Raises ConnectionClosed if the connection is closed.

        kombu 5.7 reads attributes of a closed connection during an acknowledgement, and the
        resulting error ended the worker.
        """
        if getattr(self.connection, "client", None) is None:
            raise ConnectionClosed("the connection to Redis was closed")
        return super()._connparams(*args, **kwargs)  # type: ignore[misc]


class Transport(redis.Transport):
    """Transport of kombu with `Channel` from this module."""

    Channel = Channel
