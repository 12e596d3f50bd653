"""Onset: the minutes between which a regression began, as a change point with a 95% interval.

Algorithm of a level: maximum likelihood over change points. The series is a constant, plus a rise
that begins at the change point and is complete after one of `RISES` entries, plus noise with memory
(AR(1)), plus white noise. Such noise is an ARMA(1, 1) process: one recursive filter whitens the
series, the constant and the rise, and least squares then gives the residual of every change point
at once. Memory and white noise take the best values of a grid, at each change point and rise.

Algorithm of a count: binomial likelihood over change points, with one share of events before and a
higher one after, divided by the overdispersion of the entries.

The interval contains every change point whose log likelihood, times two, is within a cut of the
best one. The chi-square cut of one parameter (3.84) is too low, because the likelihood is not
smooth in a change point and the noise is fitted, too: `LEVEL_CUT` and `COUNT_CUT` are calibrated by
simulation for 95% coverage (see decision 0128). The interval begins one entry earlier, because an
entry in whose last part the change began hardly shows it. A rise of several entries widens it by a
quarter of the rise, because real rises are not straight.

A change in several steps, such as instance by instance, begins with its first step: the entries
before a change point are searched again.

Invariants:

- the change was present from the first entry unless a change point is more likely than none, and
  the mean before it is below half of the mean after it;
- the interval lies within the entries and contains the best minute;
- a single entry that its neighbors do not confirm is no onset.

Assumptions: the rise lasts; entries in a row have the same distance, so that a pause has no
length; the noise is the same before and after.

Source: Hinkley, Inference about the change-point in a sequence of random variables, Biometrika 57,
1970; Box and Tiao, Intervention analysis, JASA 70, 1975.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.signal import lfilter
from scipy.special import xlogy

MEMORIES = (0.0, 0.6, 0.9, 0.97)
"""Correlations of the noise of two entries in a row."""
WHITE_RATIOS = (0.0, 1.0, 5.0, 25.0)
"""Variances of the white noise, relative to that of an innovation of the noise with memory."""
RISES = (1, 2, 4, 8, 16, 32, 64, 128)
"""Numbers of entries after which a rise is complete."""
LEVEL_CUT = 8.0
COUNT_CUT = 8.0
MIN_GAIN = 6.0
"""The least rise of the log likelihood, times two, that a change point must bring."""
STEP_GAIN, STEP_SHARE = 20.0, 0.25
"""The least gain of an earlier step, and its least share of the mean after the last one."""
MIN_ENTRIES = 8
MAX_MINUTES = 3 * 1440
"""Minutes that a history keeps at least."""
DROPPED_MINUTES = 240
"""Minutes that are dropped at once."""
MIN_NOISE = 1e-3
"""The least standard deviation of a whitened entry: levels are not more precise than that."""
SPIKE_SIGMAS = 6.0
MAD_TO_SIGMA = 1.4826
MAX_ENTRY_CORRELATION = 0.9
TINY = 1e-9

Floats = NDArray[np.float64]


class Onset(NamedTuple):
    """The first and the last minute at which the regression may have begun, and the most likely
    one."""

    earliest: int
    best: int
    latest: int


class History:
    """The entries of a series since the deployment, of the last `MAX_MINUTES`: the last minute of
    each entry, its weight, and its sum over that weight, which is positive if worse.

    The weight of a level is its number of minutes, that of a count its number of calls.
    """

    __slots__ = ("_find", "_found", "minutes", "sums", "truncated", "weights")

    def __init__(self, find: Finder) -> None:
        self.minutes = array("i")
        self.weights = array("f")
        self.sums = array("f")
        self.truncated = False
        """True if entries were dropped: the first entry is then not the first compared one."""
        self._find = find
        self._found: tuple[int, Onset | None] | None = None

    def add(self, minute: int, weight: float, total: float) -> None:
        """Adds the entry that ends with `minute`."""
        if self.minutes and minute - self.minutes[0] >= MAX_MINUTES + DROPPED_MINUTES:
            kept = bisect_left(self.minutes, minute - MAX_MINUTES)
            for column in (self.minutes, self.weights, self.sums):
                del column[:kept]
            self.truncated = True
        self.minutes.append(minute)
        self.weights.append(weight)
        self.sums.append(total)

    @property
    def first(self) -> int:
        """The last minute of the first entry."""
        return self.minutes[0]

    def find_onset(self, since: int) -> Onset | None:
        """The onset of a regression that is known since a minute; None if it was there from the
        first entry.

        The newest quarter of the entries after `since` may be left out. This changes the result
        very little, and most minutes need no computation. The result depends on the entries only,
        not on earlier requests.
        """
        known = len(self.minutes) - bisect_left(self.minutes, since)
        count = len(self.minutes) - known % max(known // 4, 1)
        if not count:
            return None
        newest = self.minutes[count - 1]
        if self._found is None or self._found[0] != newest:
            columns = (self.minutes, self.weights, self.sums)
            entries = Entries(*(np.array(column[:count], float) for column in columns))
            self._found = newest, self._find(entries)
        return self._found[1]


class Entries(NamedTuple):
    """Entries of a history."""

    minutes: Floats
    weights: Floats
    sums: Floats


Finder = Callable[[Entries], Onset | None]


def find_level_onset(entries: Entries) -> Onset | None:
    """The onset of a rise of log changes; None if the rise was there from the first entry."""
    return find_first_rise(entries, entries.weights, fit_level)


def find_count_onset(entries: Entries) -> Onset | None:
    """The onset of a rise of the share of calls with events; None if the rise was there from the
    first entry."""
    return find_first_rise(entries, np.ones(len(entries.minutes)), fit_share)


class Rise(NamedTuple):
    """A change point: its interval and its best entry, the gain of likelihood, and the mean from
    it on."""

    first: int
    best: int
    last: int
    gain: float
    mean: float


def find_first_rise(
    entries: Entries, spans: Floats, fit: Callable[[Entries], Rise | None]
) -> Onset | None:
    """The onset of the earliest rise, as minutes. A rise in several steps, such as instance by
    instance, begins with its first step."""
    rise = fit(entries)
    if rise is None:
        return None
    level = rise.mean
    while True:
        before = Entries(*(column[: rise.best] for column in entries))
        earlier = fit(before)
        if earlier is None or earlier.gain < STEP_GAIN or earlier.mean < STEP_SHARE * level:
            break
        rise = earlier
    begins = entries.minutes - spans + 1
    return Onset(int(begins[rise.first]), int(begins[rise.best]), int(entries.minutes[rise.last]))


def fit_level(entries: Entries) -> Rise | None:
    """The most likely rise of a level."""
    if len(entries.minutes) < MIN_ENTRIES:
        return None
    profile = profile_levels(drop_spikes(entries.sums / entries.weights))
    return read_interval(entries, *profile, LEVEL_CUT)


def fit_share(entries: Entries) -> Rise | None:
    """The most likely rise of a share."""
    if len(entries.minutes) < MIN_ENTRIES:
        return None
    return read_interval(entries, *profile_shares(entries.sums, entries.weights), COUNT_CUT)


def read_interval(entries: Entries, profile: Floats, constant: float, cut: float) -> Rise | None:
    """The interval of change points whose likelihood is close to the best one, over all rises.
    `constant` is the likelihood without a change point."""
    gain, best = float(profile.max()) - constant, int(np.argmax(profile.max(axis=0)))
    if gain <= MIN_GAIN:
        return None
    before, after = (
        float(entries.sums[part].sum() / entries.weights[part].sum())
        for part in (slice(best), slice(best, None))
    )
    if before >= after / 2:
        return None
    rises, places = np.nonzero(profile >= profile.max() - cut)
    slack = np.array(RISES)[rises] // 4
    first = 0 if gain <= cut else max(int(np.min(places - slack)) - 1, 0)
    last = min(int(np.max(places + slack)), len(entries.minutes) - 1)
    return Rise(first, best, last, gain, after)


def drop_spikes(values: Floats) -> Floats:
    """The series with each entry that is far away from both neighbors replaced by the median of
    the three."""
    middle = values.copy()
    middle[1:-1] = np.median(np.stack((values[:-2], values[1:-1], values[2:])), axis=0)
    noise = MAD_TO_SIGMA * float(np.median(np.abs(np.diff(values)))) / math.sqrt(2.0)
    far = np.abs(values - middle) > SPIKE_SIGMAS * max(noise, MIN_NOISE)
    return np.where(far, middle, values)


def profile_levels(values: Floats) -> tuple[Floats, float]:
    """The log likelihood, times two, of each rise at each entry, and of no rise.

    The likelihood is conditional on the first entry, which cannot be a change point.
    """
    count = len(values) - 1
    rises = [rise for rise in RISES if rise <= max(count // 2, 1)]
    shapes = [np.minimum(np.arange(1.0, count + 1) / rise, 1.0) for rise in rises]
    profile, constant = np.full((len(rises), count + 1), -np.inf), -math.inf
    floor, length = count * MIN_NOISE**2, next_fast_len(2 * count, real=True)
    noises = ((memory, ratio) for memory in MEMORIES for ratio in WHITE_RATIOS)
    for noise in noises:
        if not noise[0] and noise[1]:
            continue
        whitening = whitening_filter(*noise)
        level = lfilter(*whitening, np.ones(count + 1))[1:]
        series = lfilter(*whitening, values - values[0])[1:]
        norm = float(level @ level) + TINY
        series -= float(level @ series) / norm * level
        residual = float(series @ series) + floor
        constant = max(constant, -count * math.log(residual))
        spectra = rfft(series, length), rfft(level, length)
        for number, shape in enumerate(shapes):
            rise = lfilter(*whitening, shape)
            turned = np.conj(rfft(rise, length))
            fitted, shared = (irfft(each * turned, length)[:count] for each in spectra)
            power = np.maximum(np.cumsum(rise * rise)[::-1] - shared**2 / norm, TINY)
            left = residual - np.maximum(fitted, 0.0) ** 2 / power
            found = -count * np.log(np.maximum(left, floor))
            profile[number, 1:] = np.maximum(profile[number, 1:], found)
    return profile, constant


def whitening_filter(memory: float, ratio: float) -> tuple[list[float], list[float]]:
    """The coefficients of the filter that turns noise with memory plus white noise into white
    noise."""
    power, lagged = 1.0 + ratio * (1.0 + memory * memory), -memory * ratio
    if not lagged:
        return [1.0, -memory], [1.0, 0.0]
    root = (power - math.sqrt(power * power - 4.0 * lagged * lagged)) / (2.0 * lagged)
    return [1.0, -memory], [1.0, root]


def profile_shares(events: Floats, calls: Floats) -> tuple[Floats, float]:
    """The log likelihood, times two, of a higher share of events from each entry, and of one share
    throughout, both divided by the overdispersion."""
    seen, total = np.cumsum(events), np.cumsum(calls)
    seen_before, total_before = seen - events, total - calls
    seen_after, total_after = seen[-1] - seen_before, total[-1] - total_before
    constant = float(binomial_likelihood(seen[-1:], total[-1:])[0])
    profile = binomial_likelihood(seen_before, total_before) + binomial_likelihood(
        seen_after, total_after
    )
    profile[seen_after * total_before <= seen_before * total_after] = -np.inf
    best = int(np.argmax(profile))
    shares = np.repeat(
        [seen_before[best] / max(total_before[best], 1.0), seen_after[best] / total_after[best]],
        [best, len(calls) - best],
    )
    scale = measure_overdispersion(events, calls, shares)
    return profile[None] / scale, constant / scale


def binomial_likelihood(events: Floats, calls: Floats) -> Floats:
    """The log likelihood, times two, of a number of events at its own share."""
    share = events / np.maximum(calls, 1.0)
    found: Floats = 2.0 * (xlogy(events, share) + xlogy(calls - events, 1.0 - share))
    return found


def measure_overdispersion(events: Floats, calls: Floats, shares: Floats) -> float:
    """The variance of the events relative to a binomial one, at least 1, including the correlation
    of entries in a row."""
    variance = calls * shares * (1.0 - shares)
    known = variance > TINY
    if not known.any():
        return 1.0
    away = (events - calls * shares)[known]
    away /= np.sqrt(variance[known])
    power = float(away @ away)
    memory = float(away[1:] @ away[:-1]) / max(power, TINY)
    memory = min(max(memory, 0.0), MAX_ENTRY_CORRELATION)
    return max(1.0, power / len(away) * (1.0 + memory) / (1.0 - memory))
