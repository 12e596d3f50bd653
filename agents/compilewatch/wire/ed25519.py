"""A verifier of Ed25519 signatures (RFC 8032, 5.1.7) in plain Python. It holds no secret, so its time may depend on what it reads.

Strict where the RFC leaves a choice: encodings are canonical, keys of small order are refused, the equation has no cofactor."""

from __future__ import annotations

import hashlib

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64
_P = (1 << 255) - 19
_ORDER = (1 << 252) + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_ROOT_OF_MINUS_ONE = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
"""X, Y, Z, T with x = X/Z, y = Y/Z, xy = T/Z."""
_NEUTRAL: _Point = (0, 1, 1, 0)


class PublicKey:
    """A point of the curve that is of no small order; raises ValueError with what is wrong."""

    def __init__(self, encoded: bytes) -> None:
        if len(encoded) != PUBLIC_KEY_BYTES:
            raise ValueError(f"{len(encoded)} bytes, expected {PUBLIC_KEY_BYTES}")
        point = _decoded(encoded)
        if point is None:
            raise ValueError("no canonical encoding of a point of the curve")
        if _same(_doubled(_doubled(_doubled(point))), _NEUTRAL):
            raise ValueError("a point of small order, for which anyone can make signatures")
        self.encoded = encoded
        self._minus = _negative(point)
        self._base_minus = _sum(_BASE, self._minus)

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the signature is that of this key over the message."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        begin, factor = signature[:32], int.from_bytes(signature[32:], "little")
        if factor >= _ORDER:
            return False
        digest = hashlib.sha512(begin + self.encoded + message).digest()
        challenge = int.from_bytes(digest, "little") % _ORDER
        # An encoding that is not canonical equals none that is made here.
        return _encoded(self._combined(factor, challenge)) == begin

    def _combined(self, factor: int, challenge: int) -> _Point:
        """`factor` times the base point, less `challenge` times the key; both at once, bit by bit."""
        terms = (None, _BASE, self._minus, self._base_minus)
        found = _NEUTRAL
        for place in range(max(factor.bit_length(), challenge.bit_length()) - 1, -1, -1):
            found = _doubled(found)
            term = terms[(factor >> place & 1) | (challenge >> place & 1) << 1]
            if term is not None:
                found = _sum(found, term)
        return found


def _sum(left: _Point, right: _Point) -> _Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % _P
    b = (left[1] + left[0]) * (right[1] + right[0]) % _P
    c = 2 * _D * left[3] * right[3] % _P
    d = 2 * left[2] * right[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _doubled(point: _Point) -> _Point:
    x, y, z, _ = point
    a, b = x * x % _P, y * y % _P
    h = a + b
    e, g = h - (x + y) * (x + y), a - b
    f = 2 * z * z + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _negative(point: _Point) -> _Point:
    return _P - point[0], point[1], point[2], _P - point[3]


def _same(left: _Point, right: _Point) -> bool:
    return not (
        (left[0] * right[2] - right[0] * left[2]) % _P
        or (left[1] * right[2] - right[1] * left[2]) % _P
    )


def _encoded(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decoded(encoded: bytes) -> _Point | None:
    """The point (5.1.3), or None where there is none, or another encoding is its own."""
    number = int.from_bytes(encoded, "little")
    odd, y = number >> 255, number & ((1 << 255) - 1)
    if y >= _P:
        return None
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    x = pow(square, (_P + 3) // 8, _P)
    if (x * x - square) % _P:
        x = x * _ROOT_OF_MINUS_ONE % _P
    if (x * x - square) % _P or (not x and odd):
        return None
    x = _P - x if x & 1 != odd else x
    return x, y, 1, x * y % _P


def _base() -> _Point:
    found = _decoded((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    if found is None:
        raise ArithmeticError("the base point is no point of the curve")
    return found


_BASE = _base()
