// One mark per instance, one row per stratum and shape bucket, and a line at the mean of each side.

import { colour, css } from "./theme.js";
import { draw, inert } from "./plot.js";
import { figure } from "./axis.js";

const ROW = 52;
const SIDES = [["baseline", 1, "square", -0.14], ["candidate", 2, "circle", 0.14]];

function side(rows, [arm, slot, symbol, shift], unit) {
  const marks = rows.flatMap(
    (row, y) => row[arm].values.map((value, i) => ({ value, y: y + shift, name: row[arm].names[i], place: row.place }))
  );
  return {
    type: "scatter", mode: "markers", x: marks.map((mark) => mark.value), y: marks.map((mark) => mark.y),
    hovertemplate: "%{text}<extra></extra>",
    text: marks.map((mark) => inert(`${mark.name}: ${figure(mark.value)} ${unit}, ${mark.place}`)),
    marker: { symbol, size: 9, color: colour(slot), line: { width: 1, color: css("--surface") } },
  };
}

function means(rows) {
  return rows.flatMap((row, y) => SIDES.filter(([arm]) => row[arm].mean !== null).map(([arm, slot, , shift]) => ({
    type: "line", x0: row[arm].mean, x1: row[arm].mean, y0: y + shift - 7 / ROW, y1: y + shift + 7 / ROW,
    line: { color: colour(slot), width: 1.5 },
  })));
}

export function stripHeight({ rows }) {
  return rows.length * ROW + 36;
}

export function strip(element, { rows, unit }) {
  const narrow = element.clientWidth < 520;
  const left = narrow ? 8 : Math.min(240, Math.round(element.clientWidth * 0.42));
  const limit = Math.max(12, Math.floor((left - 8) / 6.4));
  const short = (text) => (text.length > limit && !narrow ? `${text.slice(0, limit - 1)}\u2026` : text);
  const names = rows.flatMap((row, y) => [
    {
      text: `${inert(short(row.place))}`, xref: "paper", x: 0, xanchor: "left", xshift: narrow ? 0 : -left, y,
      yshift: narrow ? 20 : 7, showarrow: false, font: { size: 11, color: css("--ink") }
    },
    ...(narrow ? [] : [{
      text: inert(row.counts), xref: "paper", x: 0, xanchor: "left", xshift: -left, y, yshift: -8, showarrow: false
    }]),
    {
      text: inert(row.change),
      xref: "paper",
      x: 1,
      xanchor: "right",
      xshift: 68,
      y,
      showarrow: false,
      font: { size: 12, color: css("--ink-2") }
    },
  ]);
  const rules = rows.slice(1).map(
    (_, y) => (
      { type: "line", xref: "paper", x0: 0, x1: 1, y0: y + 0.5, y1: y + 0.5, line: { color: css("--line"), width: 1 } }
    )
  );
  return draw(element, SIDES.map((one) => side(rows, one, unit)), {
    height: stripHeight({ rows }), margin: { t: 8, r: 72, b: 28, l: left }, shapes: [...rules, ...means(rows)],
    annotations: names,
    xaxis: { ticksuffix: ` ${unit}`, showticksuffix: "last", nticks: 6, rangemode: "normal" },
    yaxis: { range: [rows.length - 0.5, -0.5], showgrid: false, showticklabels: false },
  });
}
