// Ticks of time on round moments of the viewer's zone, and numbers with few digits.

const MINUTE = 60000;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * MINUTE);
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

export function timeTicks(first, last, most) {
  const step = STEPS.find((candidate) => (last - first) / candidate <= most) || STEPS[STEPS.length - 1];
  const midnight = new Date(first);
  midnight.setHours(0, 0, 0, 0);
  const ticks = [];
  for (let at = midnight.getTime(); at <= last; at += step) if (at >= first) ticks.push(at);
  return { ticks, label: (at) => (step < 1440 * MINUTE ? clock : ofThisYear(at) ? day : dated).format(at) };
}

export function moment(at) {
  const told = (new Date(at).toDateString() === new Date().toDateString() ? clock : full).format(at);
  return ofThisYear(at) ? told : `${dated.format(at)}, ${clock.format(at)}`;
}

function ofThisYear(at) {
  return new Date(at).getFullYear() === new Date().getFullYear();
}

export function figure(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = size > 0 && size < 0.01 ? value.toPrecision(2) : value.toLocaleString("en", { maximumFractionDigits: digits });
  return text.replace("-", "\u2212");
}
