// Value axes: limits that fit the values, round ticks, and whether the axis is cut above zero. Pure functions.

const ROUND = [1, 2, 2.5, 5, 10, 20];
const MOST_TICKS = 5;
const CUT = 0.25; // an axis whose fitted end is below this share of its top begins at zero

const finite = (values) => values.filter((value) => typeof value === "number" && Number.isFinite(value));

// The smallest round step with at most five ticks over the span.
export function roundStep(span) {
  const power = 10 ** Math.floor(Math.log10(span / MOST_TICKS));
  return power * ROUND.find((factor) => span / (power * factor) <= MOST_TICKS - 1 + 1e-9);
}

function stepped(low, high) {
  const step = roundStep(high - low || Math.abs(high) || 1);
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  const ticks = [];
  for (let i = first; i <= Math.max(last, first + 1); i += 1) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}

// `soft` values (ends of intervals) widen the axis, but one very uncertain bin does not flatten the others.
export function fitAxis(values, { fromZero = false, soft = [], log = false } = {}) {
  const known = finite(values);
  if (log) return logAxis(known);
  if (!known.length) return axis([0, 1]);
  let [low, high] = [Math.min(...known), Math.max(...known)];
  const around = finite(soft);
  const room = high - low || Math.abs(high);
  if (around.length) {
    high = Math.max(high, Math.min(Math.max(...around), high + room));
    low = Math.min(low, Math.max(Math.min(...around), low - room));
  }
  if (fromZero || (low >= 0 && low < CUT * high)) return axis(stepped(Math.min(0, low), Math.max(0, high)));
  const margin = 0.08 * (high - low) || 0.05 * Math.abs(high) || 1;
  const fitted = stepped(low - margin, high + margin);
  const cut = low >= 0 && fitted[0] <= CUT * fitted[fitted.length - 1];
  return axis(cut ? stepped(0, high + margin) : fitted);
}

function axis(ticks) {
  const [low, high] = [ticks[0], ticks[ticks.length - 1]];
  return { low, high, ticks, cut: low > 0 || high < 0, at: (value) => (value - low) / (high - low) };
}

function logAxis(known) {
  const positive = known.filter((value) => value > 0);
  if (!positive.length) return axis([0, 1]);
  const [least, most] = [Math.min(...positive), Math.max(...positive)];
  const [from, to] = [Math.floor(Math.log10(least)), Math.ceil(Math.log10(most))];
  const round = (factors) => {
    const found = [];
    for (let power = from - 1; power <= to + 1; power += 1)
      for (const factor of factors) found.push(Number((factor * 10 ** power).toPrecision(12)));
    return found;
  };
  const [low, high] = [
    Math.max(...round([1, 2, 5]).filter((value) => value <= least)),
    Math.min(...round([1, 2, 5]).filter((value) => value > most)),
  ];
  const choices = [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1]].map(
    (factors) => round(factors).filter((value) => value > low && value < high)
  );
  const inner = choices.find((values) => values.length <= MOST_TICKS) ?? [];
  const ticks = [low, ...inner, high];
  const width = Math.log(high / low);
  return { low, high, ticks, log: true, cut: true, at: (value) => (value > 0 ? Math.log(value / low) / width : null) };
}

// Stretches of neighbouring bins with a value: `[first, last]` of each.
export function runs(values) {
  const found = [];
  values.forEach((value, i) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return;
    const last = found[found.length - 1];
    if (last && last[1] === i - 1) last[1] = i;
    else found.push([i, i]);
  });
  return found;
}

// A line of one or two values between gaps is too short to see, so its values get the shape of their version.
export function alone(values) {
  const short = runs(values).filter(([from, to]) => to - from < 2);
  return short.flatMap(([from, to]) => (from === to ? [from] : [from, to]));
}
