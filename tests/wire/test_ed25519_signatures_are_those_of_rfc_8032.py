"""The verifier accepts the signatures of RFC 8032, agrees with OpenSSL, and refuses keys that only
strict verifiers refuse."""

from __future__ import annotations

import hashlib
import random

import pytest
from compilewatch.wire.ed25519 import PublicKey
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from hypothesis import given
from hypothesis import strategies as st

P = (1 << 255) - 19
ORDER = (1 << 252) + 27742317777372353535851937790883648493
OF_THE_RFC = {
    "nothing": (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    "one byte": (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    "two bytes": (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
    "SHA-512 of abc": (
        "833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42",
        "ec172b93ad5e563bf4932c70e1245034c35467ef2efd4d64ebf819683467e2bf",
        hashlib.sha512(b"abc").hexdigest(),
        "dc2a4459e7369633a52b1bf277839a00201009a3efbf3ecb69bea2186c26b58909351fc9ac90b3ecfdfbc7c66431e0303dca179c138ac17ad9bef1177331a704",
    ),
}
ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
SMALL = {
    "order 1": (1).to_bytes(32, "little"),
    "order 2": (P - 1).to_bytes(32, "little"),
    "order 4": (0).to_bytes(32, "little"),
    "order 4, odd": (1 << 255).to_bytes(32, "little"),
    "order 8": bytes.fromhex(ORDER_8),
    "order 8, odd": (int.from_bytes(bytes.fromhex(ORDER_8), "little") | 1 << 255).to_bytes(
        32, "little"
    ),
}
SECRET = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = SECRET.public_key().public_bytes_raw()


def oracle(public: bytes, signature: bytes, message: bytes) -> bool:
    """OpenSSL's result, or that OpenSSL rejects the key."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def ours(public: bytes, signature: bytes, message: bytes) -> bool:
    try:
        return PublicKey(public).verify(signature, message)
    except ValueError:
        return False


def flipped(data: bytes, bit: int) -> bytes:
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("name", OF_THE_RFC)
def test_the_signatures_of_the_rfc_are_accepted(name: str) -> None:
    secret, public, message, signature = map(bytes.fromhex, OF_THE_RFC[name])
    key = PublicKey(public)
    assert Ed25519PrivateKey.from_private_bytes(secret).sign(message) == signature
    assert key.verify(signature, message)
    assert not key.verify(signature, message + b"\0")


@pytest.mark.parametrize("bit", range(0, 512, 7))
def test_a_flipped_bit_of_the_signature_is_refused(bit: int) -> None:
    assert not ours(PUBLIC, flipped(SECRET.sign(b"eager"), bit), b"eager")


@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=300))
def test_signatures_by_openssl_are_accepted(seed: bytes, message: bytes) -> None:
    secret = Ed25519PrivateKey.from_private_bytes(seed)
    assert ours(secret.public_key().public_bytes_raw(), secret.sign(message), message)


@given(
    message=st.binary(max_size=50),
    bits=st.lists(st.integers(0, 767), min_size=1, max_size=3),
    cut=st.integers(0, 64),
)
def test_changed_input_gives_the_result_of_openssl(
    message: bytes, bits: list[int], cut: int
) -> None:
    public, signature = PUBLIC, SECRET.sign(message)
    for bit in bits:
        if bit < 256:
            public = flipped(public, bit)
        else:
            signature = flipped(signature, bit - 256)
    for given_ in (signature, signature[:cut], signature + b"\0"):
        assert ours(public, given_, message) == oracle(public, given_, message)


@pytest.mark.parametrize("seed", range(40))
def test_half_of_all_texts_are_keys_those_that_encode_a_point(seed: int) -> None:
    text = random.Random(seed).randbytes(32)
    square = int.from_bytes(text, "little") % (1 << 255)
    square = square * square % P
    square = (square - 1) * pow(-121665 * pow(121666, -1, P) * square + 1, -1, P) % P
    on_curve = pow(square, (P - 1) // 2, P) == 1
    try:
        PublicKey(text)
    except ValueError as error:
        assert not on_curve and "curve point" in str(error)
    else:
        assert on_curve


def test_a_second_form_of_the_same_signature_is_refused() -> None:
    signature = SECRET.sign(b"eager")
    for times in (1, 2, 7):
        higher = int.from_bytes(signature[32:], "little") + times * ORDER
        assert not ours(PUBLIC, signature[:32] + higher.to_bytes(32, "little"), b"eager")
    for factor in (ORDER, ORDER - 1, 0, (1 << 256) - 1, 1 << 255, 1 << 253):
        given_ = signature[:32] + factor.to_bytes(32, "little")
        assert not ours(PUBLIC, given_, b"eager") and not oracle(PUBLIC, given_, b"eager")


@pytest.mark.parametrize(
    "begin",
    [*SMALL.values(), *((P + more).to_bytes(32, "little") for more in (0, 1, 18)), b"\xff" * 32],
)
@pytest.mark.parametrize("factor", [0, 1, ORDER - 1, ORDER, ORDER + 1, P, P - 1, (1 << 256) - 1])
def test_a_signature_of_special_values_is_refused_as_openssl_does(
    begin: bytes, factor: int
) -> None:
    signature = begin + factor.to_bytes(32, "little")
    assert not ours(PUBLIC, signature, b"eager") and not oracle(PUBLIC, signature, b"eager")
    assert not ours(PUBLIC, begin + SECRET.sign(b"eager")[32:], b"eager")


@pytest.mark.parametrize("name", SMALL)
def test_a_key_of_small_order_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="small order"):
        PublicKey(SMALL[name])


def test_openssl_accepts_a_signature_that_anyone_can_create_for_a_key_of_small_order() -> None:
    """Shows that the refusal above matters: for the neutral element, R = s B holds for every
    message."""
    neutral, signature = SMALL["order 1"], SMALL["order 1"] + bytes(32)
    assert oracle(neutral, signature, b"eager") and not ours(neutral, signature, b"eager")


@pytest.mark.parametrize("y", [P, P + 1, P + 2, P + 18, (1 << 255) - 1])
@pytest.mark.parametrize("odd", [0, 1])
def test_a_key_in_another_encoding_is_refused(y: int, odd: int) -> None:
    with pytest.raises(ValueError, match="not a canonical encoding"):
        PublicKey((y | odd << 255).to_bytes(32, "little"))


@pytest.mark.parametrize("y", [1, P - 1])
def test_minus_zero_is_not_a_key(y: int) -> None:
    with pytest.raises(ValueError, match="not a canonical encoding"):
        PublicKey((y | 1 << 255).to_bytes(32, "little"))


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_a_key_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match=f"{length} bytes, expected 32"):
        PublicKey(b"\1" * length)


@pytest.mark.parametrize("length", [0, 1, 32, 63, 65, 128])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    assert not PublicKey(PUBLIC).verify((SECRET.sign(b"eager") * 2)[:length], b"eager")
