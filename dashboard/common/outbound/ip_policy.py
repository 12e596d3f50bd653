"""IP policy: whether an address belongs to the public internet, including embedded addresses."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

# Python 3.11 classifies some of these as global. 168.63.129.16 is the host agent of a cloud.
_NON_PUBLIC_V4 = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_UNICAST_V6 = IPv6Network("2000::/3")
_NON_PUBLIC_V6 = tuple(IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "3fff::/20"))
_NAT64 = IPv6Network("64:ff9b::/96")


def is_public(text: str) -> bool:
    """True only for a public unicast address. An embedded IPv4 address must be public too."""
    try:
        address = ip_address(text)
    except ValueError:
        return False
    return _v4_is_public(address) if isinstance(address, IPv4Address) else _v6_is_public(address)


def _v4_is_public(address: IPv4Address) -> bool:
    return (
        address.is_global
        and not address.is_multicast
        and not any(address in network for network in _NON_PUBLIC_V4)
    )


def _v6_is_public(address: IPv6Address) -> bool:
    if address.scope_id:
        return False
    if address.ipv4_mapped:
        return _v4_is_public(address.ipv4_mapped)
    if address in _NAT64:
        return _v4_is_public(IPv4Address(int(address) & 0xFFFFFFFF))
    inner = [address.sixtofour] if address.sixtofour else list(address.teredo or ())
    if address not in _UNICAST_V6 or any(address in network for network in _NON_PUBLIC_V6):
        return False
    return (
        address.is_global and not address.is_multicast and all(_v4_is_public(one) for one in inner)
    )
