"""Vocabulary: words and patterns that prose avoids, each with the words to write instead."""

import re
from typing import NamedTuple


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    instead: str


def _rule(pattern: str, instead: str) -> Rule:
    return Rule(re.compile(pattern, re.IGNORECASE), instead)


RULES = (
    _rule(r"\b(tells?|told|telling)\b", "report, notify, state, distinguish"),
    _rule(r"\b(says?|said|saying)\b", "report, state"),
    _rule(r"\b(hears?|heard)\b", "receive, observe"),
    _rule(r"\b(nobody|somebody|anybody|whoever|whatever)\b", "the operator, a member, the caller"),
    _rule(r"\bbesides?\b", "compared with, next to, alongside, in addition to"),
    _rule(r"\bstands?\b", "is, remains"),
    _rule(r"\banew\b", "again"),
    _rule(r"\bow(e|es|ed|ing)\b", "queued, pending"),
    _rule(r"\bheld against\b", "compared with"),
    _rule(r"\b(put|set) (aside|away)\b", "snoozed, quarantined, retained"),
    _rule(r"\bfor ever\b", "indefinitely, without end"),
    _rule(r"\btakes? no (more )?calls\b", "receives no traffic"),
    _rule(r"\b(went|goes|go|gone) apart\b", "diverge"),
    _rule(r"\bfor certain\b", "confirmed"),
    _rule(r"\b(latch|latched|latches)\b", "eager fallback"),
    _rule(r"\bbrought\b", "loaded"),
    _rule(r"\bso (many|much|long)\b", "N, up to N, for N seconds"),
    _rule(r"\bshall\b", "must, should"),
    _rule(r"\b(is|are|was|were) made (of|from)\b", "consists of"),
    _rule(r"\bunder way\b", "in progress"),
    _rule(r"\bof (which|whose|whom)\b", "a sentence of its own, with the noun"),
    _rule(r"\bwhat (is|are|was|were)\b", "the noun"),
    _rule(r"\blook(s|ed|ing)? at\b", "sample, check, read"),
    _rule(r"\bby (itself|themselves)\b", "automatically, alone"),
    _rule(r"\b(any|no) more\b(?! than)", "no longer"),
    _rule(r"\bhardly ever\b", "rarely"),
    _rule(r"\bfigures?\b", "values, metrics"),
    _rule(r"\b(quicker|slower) for\b", "benefits from"),
    _rule(r"\bvouch(es|ed)?\b", "confirm, verify"),
    _rule(r"\d %(?![\w(])", "no space before %"),
    _rule(r"\b\d+(KiB|MiB|GiB|ms|us)\b", "a space before the unit"),
)
"""Rules that a pattern can check. A reader checks the rest: "makes (a key)", "it" without a
noun."""

HEADING_RULE = _rule(r"^#+ .*(\?|\.)$", "a noun heading")
