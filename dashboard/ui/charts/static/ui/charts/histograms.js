// Overlaid distributions: steps as wide as the counted bins, without smoothing, baseline first.

import { colour, css } from "./theme.js";
import { draw, inert } from "./plot.js";
import { figure } from "./axis.js";

const SIDES = { baseline: [1, "square", 0.16], candidate: [2, "circle", 0.14] };
const SETS = [[1], [1, 3], [1, 2, 5], [1, 1.5, 2, 3, 5, 7]];

function faded(ink, share) {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(ink);
  return hex ? `rgba(${hex.slice(1).map((part) => parseInt(part, 16)).join(",")},${share})` : ink;
}

// The share of calls up to each edge of a bin, with straight lines because the distribution within a bin is unknown.
function summed(one) {
  let sum = 0;
  return one.edges.map((edge, i) => { sum += i ? one.shares[i - 1] : 0; return Math.min(1, sum); });
}

function curve(one, unit, whole) {
  const [slot, , share] = SIDES[one.role];
  const ink = colour(slot);
  const x = whole
    ? one.edges
    : one.edges.flatMap((edge, i) => (i === 0 || i === one.edges.length - 1 ? [edge] : [edge, edge]));
  const y = whole ? summed(one) : one.shares.flatMap((value) => [value, value]);
  return {
    type: "scatter", mode: "lines", x, y, line: { color: ink, width: 1.75, shape: "linear" },
    ...(whole ? {} : { fill: "tozeroy", fillcolor: faded(ink, share) }),
    hoverinfo: "text",
    text: inert(
      `${one.role}: p50 ${figure(one.p50)} ${unit}, p99 ${figure(one.p99)} ${unit}, `
        + `${one.count.toLocaleString("en")} calls`
    ),
  };
}

function medians(curves, height) {
  return curves.map((one) => {
    const [slot, symbol] = SIDES[one.role];
    return {
      type: "scatter", mode: "markers", x: [one.p50], y: [height], hoverinfo: "skip", cliponaxis: false,
      marker: { symbol, size: 7, color: colour(slot), line: { width: 1, color: css("--surface") } },
    };
  });
}

// The finest set of round numbers with at most five ticks; a label at the edge would be cut off.
function ticks(low, high) {
  let best = [];
  for (const steps of SETS) {
    const found = [];
    for (let power = -4; power < 9; power += 1) for (const step of steps) found.push(step * 10 ** power);
    const inside = found.filter((tick) => tick >= low && Math.log(tick / low) <= 0.94 * Math.log(high / low));
    if (inside.length <= 5 && inside.length > best.length) best = inside;
  }
  return best;
}

export const densityHeight = 112;

export function density(element, panel, whole = false) {
  // The drawing ends at bins with less than one call in a thousand; the numbers include all calls.
  const visible = panel.curves.flatMap(
    (one) => one.edges.filter((_, i) => (one.shares[Math.min(i, one.shares.length - 1)] || 0) >= 0.001)
  );
  const low = Math.min(...visible) / 1.05;
  const high = Math.max(...visible) * 1.05;
  const shown = ticks(low, high);
  return draw(element, [
    ...panel.curves.map((one) => curve(one, panel.unit, whole)), ...medians(panel.curves, whole ? 0.5 : 0)
  ], {
    height: densityHeight, margin: { t: 6, r: 10, b: 22, l: whole ? 38 : 10 },
    xaxis: {
      type: "log", range: [Math.log10(low), Math.log10(high)], tickvals: shown,
      ticktext: shown.map((tick, i) => figure(tick) + (i === shown.length - 1 ? ` ${panel.unit}` : "")),
    },
    yaxis: whole
      ? {
        range: [0, 1.02],
        tickvals: [0, 0.5, 0.9, 1],
        ticktext: ["0%", "50%", "90%", "100%"],
        zeroline: true,
        zerolinecolor: css("--axis")
      }
      : { rangemode: "tozero", showticklabels: false, showgrid: false, zeroline: true, zerolinecolor: css("--axis") },
  });
}
