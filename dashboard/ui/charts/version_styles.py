"""Styles of versions: grey square for the baseline, blue circle for the evaluated version, series 3
to 6 for others."""

from collections.abc import Iterable
from dataclasses import dataclass

BASELINE, JUDGED, OTHERS = 1, 2, (3, 4, 5, 6)
ROLES = {BASELINE: "baseline", JUDGED: "judged"}


@dataclass(frozen=True)
class VersionStyle:
    """A version in a chart; its slot determines colour, shape and dash on all pages."""

    id: int
    name: str
    slot: int

    @property
    def role(self) -> str:
        """The role: baseline, judged or other."""
        return ROLES.get(self.slot, "other")


def assign_version_styles(
    *, judged: int | None, baseline: int | None, newest_first: Iterable[tuple[int, str]]
) -> list[VersionStyle]:
    """At most six versions: the evaluated version, its baseline, then the newest others in order of
    deployment."""
    names = dict(newest_first)
    drawn = [
        VersionStyle(id, names[id], slot)
        for id, slot in ((judged, JUDGED), (baseline, BASELINE))
        if id in names and id is not None
    ]
    rest = [id for id in names if id not in (judged, baseline)][: len(OTHERS)]
    return drawn + [
        VersionStyle(id, names[id], slot) for id, slot in zip(rest, OTHERS, strict=False)
    ]
