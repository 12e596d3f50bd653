"""Rows 1 to 40: HTTP itself, keys, and encodings of the body."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from functools import cache

from compilewatch.wire.codec import deflate

from tests.hostile.case import (
    BAD_KEY,
    BAD_REQUEST,
    BY_THE_SERVER,
    NOT_JSON,
    STORED,
    TOO_LARGE,
    WRONG_TYPE,
    Case,
    Outcome,
    Send,
    text,
)
from tests.hostile.target import PATH, Answer, Target

METHOD = Outcome((405,), "wrong_method")


def good(**changed: str | None) -> Send:
    """A good body with a changed head."""
    return lambda target: target.post(target.data(), **changed)


def key(name: str) -> Send:
    """A good body with another key."""
    return lambda target: target.post(target.data(), Authorization=f"Bearer {target.others[name]}")


def body_of(target: Target) -> bytes:
    """A good body."""
    return json.dumps(target.data()).encode()


def short(target: Target) -> Answer:
    body = body_of(target)
    return target.raw([target.head(len(body) - 5) + body])


def long(target: Target) -> Answer:
    body = body_of(target)
    return target.raw([target.head(len(body) + 500) + body], half_close=True)


def chunked(target: Target) -> Answer:
    body = body_of(target)
    return target.raw(
        [
            target.head(None, Transfer_Encoding="chunked")
            + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        ]
    )


def length_and_chunks(target: Target) -> Answer:
    """A server that uses the length sees one request; a server that uses the chunks sees a second,
    hidden one."""
    body = body_of(target)
    hidden = target.head(len(body)) + body
    tail = b"0\r\n\r\n" + hidden
    return target.raw(
        [target.head(len(tail), Transfer_Encoding="chunked", Connection=None) + tail],
        half_close=True,
    )


def two_lengths(target: Target) -> Answer:
    body = body_of(target)
    head = target.head(len(body)).replace(
        b"Content-Length", b"Content-Length: 5\r\nContent-Length", 1
    )
    return target.raw([head + body])


def never_continued(target: Target) -> Answer:
    return target.raw([target.head(100, Expect="100-continue")], half_close=True)


def many_headers(target: Target) -> Answer:
    body = body_of(target)
    head = (
        target.head(len(body))[:-2]
        + b"".join(b"X-%d: 1\r\n" % number for number in range(200))
        + b"\r\n"
    )
    return target.raw([head + body])


def two_keys(target: Target) -> Answer:
    body = body_of(target)
    second = f"Authorization: Bearer {target.others['revoked']}\r\nAuthorization".encode()
    return target.raw([target.head(len(body)).replace(b"Authorization", second, 1) + body])


def folded_key(target: Target) -> Answer:
    body = body_of(target)
    return target.raw([target.head(len(body)).replace(b"Bearer ", b"Bearer\r\n ", 1) + body])


def broken_key(target: Target) -> Answer:
    body = body_of(target)
    return target.raw(
        [target.head(len(body)).replace(b"cw_ing_", b"cw_ing_\r\nX-More: ", 1) + body]
    )


@cache
def gzip_bomb() -> bytes:
    """1 GiB of zeros in less than 1 MiB."""
    stream = zlib.compressobj(9, wbits=31)
    return b"".join(stream.compress(bytes(1 << 24)) for _ in range(64)) + stream.flush()


def packed(change: str) -> Send:
    """A good body, compressed and then corrupted."""

    def send(target: Target) -> Answer:
        body = deflate(body_of(target))
        spoiled = {
            "twice": lambda: gzip.compress(body),
            "truncated": lambda: body[:-9],
            "crc": lambda: body[:-8] + b"\0\0\0\0" + body[-4:],
            "garbage": lambda: body + b"garbage",
            "empty members": lambda: gzip.compress(b"") * 10_000 + body,
        }[change]()
        return target.gzip(spoiled)

    return send


def wide_ratio(target: Target) -> Answer:
    data = target.data() | {"note": "a" * 2_000_000}
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9) as stream:
        stream.write(json.dumps(data).encode())
    return target.gzip(out.getvalue())


CASES = (
    *(Case(1, method, good(method=method), METHOD) for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS")),
    Case(1, "TRACE", good(method="TRACE"), Outcome((405,), "wrong_method")),
    Case(2, "no body", text(b""), BAD_REQUEST),
    Case(3, "chunked without length", chunked, Outcome((411,), "no_length"), full_only=True),
    Case(3, "neither length nor chunks", good(Content_Length=None), Outcome((400, 411))),
    Case(4, "length of 1 TB", good(Content_Length=str(1 << 40)), Outcome((413,))),
    Case(5, "length shorter than the body", short, Outcome((400,), "bad_request|not_json")),
    Case(6, "length longer than the body, then closed", long, Outcome((0, 400))),
    Case(7, "two lengths", two_lengths, BY_THE_SERVER),
    Case(8, "length and chunks: smuggling", length_and_chunks, BY_THE_SERVER),
    *(Case(9, f"length {text!r}", good(Content_Length=text), BY_THE_SERVER) for text in ("-1", "+10", "0x10", "1_0", "ten", "1e3")),
    Case(10, "text/plain", good(Content_Type="text/plain"), WRONG_TYPE),
    Case(11, "utf-16", good(Content_Type="application/json; charset=utf-16"), WRONG_TYPE),
    Case(12, "multipart", good(Content_Type="multipart/form-data; boundary=x"), WRONG_TYPE),
    Case(12, "no type", good(Content_Type=None), WRONG_TYPE),
    Case(13, "100-continue that never continues", never_continued, Outcome((0, 100, 400, 417))),
    Case(15, "200 headers", many_headers, Outcome((200, 400, 431)), full_only=True),
    Case(15, "a header of 64 KiB", good(X_Long="x" * 65536), Outcome((0, 400, 431)), full_only=True),
    Case(16, "a host of other servers", good(Host="elsewhere.example"), BAD_REQUEST),
    Case(16, "a host that is not valid", good(Host="127.0.0.1:80:80/x"), Outcome((400,))),
    Case(17, "plain http through a proxy", good(X_Forwarded_Proto="http", X_Forwarded_For="203.0.113.7"), Outcome((403,), "plain_http"),
         full_only=True),
    Case(18, "HTTP/0.9", lambda target: target.raw([f"GET {PATH}\r\n\r\n".encode()]), Outcome((0, 400, 405, 505))),
    Case(18, "junk", lambda target: target.raw([b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"]), Outcome((0, 400))),
    Case(19, "no key", good(Authorization=None), BAD_KEY),
    Case(20, "a mistyped key", key("mistyped"), BAD_KEY),
    Case(21, "a revoked key", key("revoked"), BAD_KEY),
    Case(22, "an expired key", key("expired"), BAD_KEY),
    Case(23, "a key that reads", key("reading"), Outcome((403,), "wrong_scope")),
    Case(25, "a key in the URL", lambda target: target.post(target.data(), path=f"{PATH}?key={target.others['url']}"),
         Outcome((400,), "key_in_url")),
    Case(26, "a key of 4 KiB", good(Authorization="Bearer " + "k" * 4096), BAD_KEY),
    Case(27, "a key that is not ASCII", good(Authorization="Bearer cw_ing_schlüssel"), Outcome((400, 401))),
    Case(28, "a key with a line break", broken_key, Outcome((400, 401))),
    Case(28, "a folded key", folded_key, Outcome((400, 401)), full_only=True),
    Case(29, "two Authorization headers", two_keys, Outcome((400, 401))),
    Case(30, "a foreign session cookie and a good key", good(Cookie="sessionid=abcdefghijklmnop; csrftoken=x"), STORED),
    Case(31, "a gzip bomb of 1 GiB", lambda target: target.gzip(gzip_bomb()), TOO_LARGE),
    Case(32, "gzip of gzip", packed("twice"), NOT_JSON),
    Case(33, "truncated gzip", packed("truncated"), BAD_REQUEST),
    Case(34, "gzip with a wrong checksum", packed("crc"), BAD_REQUEST),
    Case(35, "garbage after the gzip", packed("garbage"), BAD_REQUEST),
    Case(36, "10,000 empty members", packed("empty members"), BAD_REQUEST),
    *(Case(37, coding, good(Content_Encoding=coding), WRONG_TYPE) for coding in ("deflate", "br", "zstd", "gzip, gzip")),
    Case(38, "declared as gzip, but plain", good(Content_Encoding="gzip"), BAD_REQUEST),
    Case(39, "gzip, but not declared", lambda target: target.post(deflate(body_of(target))), NOT_JSON),
    Case(40, "a ratio of 1,000 under the size limit", wide_ratio, TOO_LARGE),
)  # fmt: skip
