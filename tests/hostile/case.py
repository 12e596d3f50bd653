"""One bad input: its row in the list, the request, and the expected outcome."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.hostile.target import Answer, Target

Send = Callable[[Target], Answer]


@dataclass(frozen=True)
class Outcome:
    """Accepted `statuses`; `code` of a refused request, or of a rejected report inside a 200
    (several joined by "|"); `stored` is True if a sequence range is durable afterwards."""

    statuses: tuple[int, ...]
    code: str = ""
    stored: bool = False

    def problem(self, answer: Answer, ranges: list[list[int]]) -> str:
        """The error, empty if there is none."""
        if answer.status not in self.statuses:
            return f"status {answer.status}, expected {self.statuses}: {answer.body[:200]!r}"
        if answer.status == 200:
            codes = [item["code"] for item in answer.data.get("rejected", [])]
            if len(codes) != bool(self.code) or (codes and codes[0] not in self.code.split("|")):
                return f"rejected {codes}, expected {self.code or 'nothing'}: {answer.body[:200]!r}"
        elif self.code and answer.code not in self.code.split("|"):
            return f"code {answer.code!r}, expected {self.code!r}: {answer.body[:200]!r}"
        elif self.code and not answer.data.get("detail"):
            return "the answer has no detail"
        return (
            ""
            if bool(ranges) == self.stored
            else f"stored {ranges}, expected {'a range' if self.stored else 'nothing'}"
        )


@dataclass(frozen=True)
class Case:
    """`row` is its number in the list of bad inputs. `full_only`: only the server of the full stack
    receives the request unchanged."""

    row: int
    title: str
    send: Send
    wanted: Outcome
    full_only: bool = False


STORED = Outcome((200,), stored=True)
NOTHING = Outcome((200,))
BAD_REQUEST = Outcome((400,), "bad_request")
NOT_JSON = Outcome((400,), "not_json")
BAD_KEY = Outcome((401,), "bad_key")
TOO_LARGE = Outcome((413,), "too_large")
WRONG_TYPE = Outcome((415,), "wrong_type")
BY_THE_SERVER = Outcome((0, 400, 411, 413, 431, 501, 505))
"""The HTTP server refuses the request or closes the connection. Such a response lacks our marker,
so an agent does not take it as final."""


def rejected(code: str) -> Outcome:
    """The request is answered, and its report is permanently refused."""
    return Outcome((200,), code)


def spoil(change: Callable[[dict[str, Any], dict[str, Any]], Any]) -> Send:
    """Sends a good request after `change(request, first report)`."""

    def send(target: Target) -> Answer:
        data = target.data()
        change(data, data["reports"][0])
        return target.post(data)

    return send


def text(body: str | bytes) -> Send:
    """Sends the body as it is."""
    return lambda target: target.post(body)


def replaced(old: str, new: str) -> Send:
    """Sends a good request whose JSON text has one part replaced, for text that no JSON library
    writes."""

    def send(target: Target) -> Answer:
        data = target.data()
        data["instance"]["note"] = "HERE"
        written = json.dumps(data)
        assert old in written
        return target.post(written.replace(old, new, 1))

    return send
