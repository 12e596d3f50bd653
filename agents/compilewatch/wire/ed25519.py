"""Ed25519 signature verification (RFC 8032, section 5.1.7) in pure Python, without dependencies.

Checks s*B = R + k*A with k = SHA-512(R, A, message) mod L, as encode(s*B - k*A) == R.
- Double-scalar multiplication: Shamir's trick (interleaved binary method) with the precomputed
  terms B, -A and B - A; about 253 doublings and 190 additions.
- Point arithmetic: extended twisted Edwards coordinates (RFC 8032, section 5.1.4), which need no
  inversion per step. The addition formula is complete, so no input needs a special case.
- Strictness, where the RFC leaves a choice: encodings are canonical, s is below the group order L,
  keys of small order are refused, and the equation is the one without cofactor.
- Timing: verification handles no secret, so its run time may depend on its input. Never use these
  functions for signing.

One verification takes milliseconds; `control/signatures.py` caches the results. Instances are
immutable, so any thread may use them.
"""

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
    """A public key: a curve point of large order.

    Raises ValueError with the reason if the bytes are none.
    """

    def __init__(self, encoded: bytes) -> None:
        if len(encoded) != PUBLIC_KEY_BYTES:
            raise ValueError(f"{len(encoded)} bytes, expected {PUBLIC_KEY_BYTES}")
        point = _decode(encoded)
        if point is None:
            raise ValueError("not a canonical encoding of a curve point")
        if _are_equal(_double(_double(_double(point))), _NEUTRAL):
            raise ValueError("a point of small order, for which anyone can create signatures")
        self.encoded = encoded
        self._negated_key = _negate(point)
        self._base_minus_key = _add(_BASE, self._negated_key)

    def verify(self, signature: bytes, message: bytes) -> bool:
        """Returns whether the signature of this key over the message is valid."""
        if len(signature) != SIGNATURE_BYTES:
            return False
        begin, factor = signature[:32], int.from_bytes(signature[32:], "little")
        if factor >= _ORDER:
            return False
        digest = hashlib.sha512(begin + self.encoded + message).digest()
        challenge = int.from_bytes(digest, "little") % _ORDER
        # Compares encodings: a non-canonical encoding of R never matches.
        return _encode(self._combine(factor, challenge)) == begin

    def _combine(self, factor: int, challenge: int) -> _Point:
        """Computes `factor` * base point - `challenge` * key, bit by bit for both scalars."""
        terms = (None, _BASE, self._negated_key, self._base_minus_key)
        result = _NEUTRAL
        for place in range(max(factor.bit_length(), challenge.bit_length()) - 1, -1, -1):
            result = _double(result)
            term = terms[(factor >> place & 1) | (challenge >> place & 1) << 1]
            if term is not None:
                result = _add(result, term)
        return result


def _add(left: _Point, right: _Point) -> _Point:
    a = (left[1] - left[0]) * (right[1] - right[0]) % _P
    b = (left[1] + left[0]) * (right[1] + right[0]) % _P
    c = 2 * _D * left[3] * right[3] % _P
    d = 2 * left[2] * right[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _double(point: _Point) -> _Point:
    x, y, z, _ = point
    a, b = x * x % _P, y * y % _P
    h = a + b
    e, g = h - (x + y) * (x + y), a - b
    f = 2 * z * z + g
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _negate(point: _Point) -> _Point:
    return _P - point[0], point[1], point[2], _P - point[3]


def _are_equal(left: _Point, right: _Point) -> bool:
    return not (
        (left[0] * right[2] - right[0] * left[2]) % _P
        or (left[1] * right[2] - right[1] * left[2]) % _P
    )


def _encode(point: _Point) -> bytes:
    inverse = pow(point[2], -1, _P)
    x, y = point[0] * inverse % _P, point[1] * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _decode(encoded: bytes) -> _Point | None:
    """Decodes a point (section 5.1.3); None if the bytes are not its canonical encoding."""
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
    point = _decode((4 * pow(5, -1, _P) % _P).to_bytes(32, "little"))
    if point is None:
        raise ArithmeticError("the base point is not on the curve")
    return point


_BASE = _base()
