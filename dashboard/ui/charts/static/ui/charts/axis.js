// Time ticks at round times of the chosen time zone, and numbers with few digits.

import { clock, date, moment as said, wall } from "../moments.js";

const MINUTE = 60000;
const DAY = 1440 * MINUTE;
const STEPS = [1, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200].map((minutes) => minutes * MINUTE);

export function timeTicks(first, last, most) {
  const step = STEPS.find((candidate) => (last - first) / candidate <= most) || STEPS[STEPS.length - 1];
  const ahead = wall(new Date(first)) - first;
  const midnight = Math.floor((first + ahead) / DAY) * DAY - ahead;
  const ticks = [];
  for (let at = midnight; at <= last; at += step) if (at >= first) ticks.push(at);
  return { ticks, label: (at) => (step < DAY ? clock : date)(new Date(at)) };
}

export const moment = (at) => said(new Date(at));

export function figure(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "\u2013";
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = size > 0 && size < 0.01
    ? value.toPrecision(2)
    : value.toLocaleString("en", { maximumFractionDigits: digits });
  return text.replace("-", "\u2212");
}

// As many decimals as the distance of the ticks needs; 0.0195 and 0.02 differ.
export function tickLabel({ ticks, log }, value) {
  const decimals = (`${Number((ticks[1] - ticks[0]).toPrecision(6))}`.split(".")[1] ?? "").length;
  if (log || !decimals || decimals > 5) return figure(value);
  return value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
    .replace("-", "\u2212");
}
