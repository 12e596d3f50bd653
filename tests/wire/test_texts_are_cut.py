"""No text is sent beyond its limit, and none contains characters that a database or an encoder
refuses."""

from __future__ import annotations

from compilewatch.wire.clip import clip
from compilewatch.wire.codec import dumps, encode, loads
from compilewatch.wire.messages import MAX_REASON, MAX_TEXT, Compile, Fact, Finding
from hypothesis import given
from hypothesis import strategies as st


@given(st.text(st.characters(), max_size=3000), st.integers(1, 2000))
def test_clipped_text_fits_and_can_be_stored(text: str, limit: int) -> None:
    clipped = clip(text, limit)
    assert len(clipped) <= limit
    assert "\x00" not in clipped
    clipped.encode()


def test_short_clean_text_stays_as_it_is() -> None:
    assert clip("grün \U0001f600") == "grün \U0001f600"


def test_reasons_may_be_longer_than_other_texts() -> None:
    data = encode(Compile(1.0, "0/1", "recompile", "ok", frame="f" * 5000, reason="r" * 5000))
    assert (len(data["frame"]), len(data["reason"])) == (MAX_TEXT, MAX_REASON)


def test_a_lone_surrogate_does_not_stop_a_report() -> None:
    assert loads(Finding, dumps(Finding("guard", "a\ud800b\x00"))).text == "a\ufffdb\ufffd"


def test_free_data_has_plain_types_and_is_bounded() -> None:
    deep: dict[str, object] = {"end": object()}
    for _ in range(30):
        deep = {"in": deep}
    fact = Fact(
        "mark", 1.0, {"nan": float("nan"), "wide": list(range(1000)), "deep": deep, "odd": {1, 2}}
    )
    data = loads(Fact, dumps(fact)).data
    assert data["nan"] == "nan"
    assert len(data["wide"]) == 64
    assert str(data["deep"]).count("in'") == 8
    assert data["odd"] == "<set>"
