"""Port binding: claims the port before anything slow starts, and explains a conflict in one
sentence."""

from __future__ import annotations

import errno
import resource
import socket

MAX_CONNECTIONS = 2048
"""Maximum connections of one process. An idle connection costs memory but no thread."""

REQUEST_HEAD_TIMEOUT_S = 10
"""Seconds from the last answer, or the first byte of a connection, to the end of a request's
head."""

MAX_DESCRIPTORS = 1 << 16


class PortUnavailableError(Exception):
    """The port is in use by another process, or this machine does not have the address."""


def port_claim(*, host: str, port: int) -> socket.socket:
    """Returns a listening socket, bound before anything slow starts. Raises
    PortUnavailableError."""
    listener = _bind(host, port, shared=False)
    try:
        listener.listen(MAX_CONNECTIONS)
    except OSError as error:
        listener.close()
        raise _explain_bind_error(error, host, port) from error
    return listener


def port_probe(*, host: str, port: int) -> str:
    """Returns the address if it can be bound at present. Raises PortUnavailableError.

    Another web process that shares the port may listen on it.
    """
    with _bind(host, port, shared=True) as probe:
        return str(probe.getsockname()[0])


def _bind(host: str, port: int, *, shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise PortUnavailableError(
            f"this machine has no {family.name}, which {host} requires: {error.strerror}"
        ) from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if host == "::":
            # IPv4 as well, if available.
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, port))
    except OSError as error:
        bound.close()
        raise _explain_bind_error(error, host, port) from error
    return bound


def _explain_bind_error(error: OSError, host: str, port: int) -> PortUnavailableError:
    if error.errno != errno.EADDRINUSE:
        return PortUnavailableError(
            f"cannot listen on {host} port {port}: {error.strerror}; set COMPILEWATCH_LISTEN or "
            "--host"
        )
    return PortUnavailableError(
        f"port {port} is in use by another process; stop it, or choose another port with "
        f"COMPILEWATCH_PORT={port + 1}"
    )


def raise_descriptor_limit() -> None:
    """Raises the limit of open files to the maximum that the system allows, up to
    `MAX_DESCRIPTORS`.

    Shells often set 1,024 descriptors.
    """
    now, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if most == resource.RLIM_INFINITY else min(most, MAX_DESCRIPTORS)
    if now != resource.RLIM_INFINITY and now < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))
