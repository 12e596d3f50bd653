// The interval plot next to the evidence table: each interval at the height of its row, worse to the right, grey band
// below the threshold.

import { css } from "./theme.js";
import { draw, inert } from "./plot.js";

const ROW = 44;
const HEAD = 40;
const FOOT = 28;
const LEFT = Math.log(0.72);
const RIGHT = Math.log(1.9);
const TICKS = [-0.2, 0, 0.2, 0.4, 0.6, 0.8];
const INKS = { rollback: "--rollback", watch: "--watch", quiet: "--ink-3", open: "--ink-3" };
const TEXTS = { rollback: "--rollback-ink", watch: "--watch-ink", quiet: "--ink-3", open: "--ink-3" };

const clip = (value) => Math.min(RIGHT, Math.max(LEFT, value));
const percent = (value) => `${value < 0 ? "\u2212" : "+"}${Math.abs(Math.round(100 * Math.expm1(value)))}%`;

function rectangle(row, y) {
  const half = 13 / ROW;
  const { band } = row.interval;
  return {
    type: "rect",
    layer: "below",
    x0: clip(-band),
    x1: clip(band),
    y0: y - half,
    y1: y + half,
    line: { width: 0 },
    fillcolor: css("--band")
  };
}

function segment(x0, x1, y0, y1, ink, width) {
  return { type: "line", x0, x1, y0, y1, line: { color: ink, width } };
}

function bar(row, y) {
  const { low, high } = row.interval;
  const ink = css(INKS[row.tone]);
  const cap = 5 / ROW;
  const shapes = [];
  if (high > LEFT && low < RIGHT) shapes.push(segment(clip(low), clip(high), y, y, ink, 2));
  // A cap marks the real end of an interval; beyond the edge the interval continues, and a label has its end.
  for (const end of [low, high])
    if (end > LEFT && end < RIGHT) shapes.push(segment(end, end, y - cap, y + cap, ink, 2));
  return shapes;
}

function label(text, x, y, ink, anchor, shift = 0) {
  return {
    text: inert(text), x, y, xanchor: anchor, xshift: shift, showarrow: false, font: { size: 11, color: css(ink) },
    bgcolor: css("--surface"), borderpad: 1
  };
}

// Middle and end of each row in units of ROW. Next to the table, the row heights of the table apply, which vary with
// the text.
function placed(element, rows, wide) {
  const cells = wide ? [...(element.closest(".evi")?.querySelectorAll("tbody tr") ?? [])] : [];
  const heights = rows.map(
    (_, i) => (cells.length === rows.length ? cells[i].getBoundingClientRect().height / ROW : 1)
  );
  let end = -0.5;
  return heights.map((height) => ({ middle: end + height / 2, end: (end += height) }));
}

const isWide = () => matchMedia("(min-width: 1401px)").matches;
const total = (at) => (at.length ? at[at.length - 1].end + 0.5 : 0);

function notes(rows, wide, at) {
  const found = [
    { text: "better \u2190", x: 0, xanchor: "right", xshift: -6, yref: "paper", y: 1, yshift: 22, showarrow: false },
    { text: "\u2192 worse", x: 0, xanchor: "left", xshift: 6, yref: "paper", y: 1, yshift: 22, showarrow: false },
  ];
  rows.forEach((row, i) => {
    const y = at[i].middle;
    if (!wide) found.push({ ...label(row.title, LEFT, y, "--ink", "left"), yshift: 15, bgcolor: "rgba(0,0,0,0)" });
    if (!row.interval) {
      const arrow = row.tone === "rollback" || row.tone === "watch" ? " \u25b6" : "";
      if (row.note)
        found.push(label(row.note + arrow, arrow ? RIGHT : 0, y, TEXTS[row.tone], arrow ? "right" : "center"));
      else found.push(label("not evaluated", 0, y, "--ink-3", "left", 8));
      return;
    }
    const { centre, low, high } = row.interval;
    if (high > RIGHT || centre > RIGHT)
      found.push(
        label(`${percent(centre)} (${percent(low)} to ${percent(high)}) \u25b6`, RIGHT, y, TEXTS[row.tone], "right")
      );
    // The better side also gets an arrow: a bar cut off at the edge would look like the end of the interval.
    else if (low < LEFT && centre > LEFT) found.push(label(`\u25c0 ${percent(low)}`, LEFT, y, TEXTS[row.tone], "left"));
    else if (centre < LEFT)
      found.push(
        label(`\u25c0 ${percent(centre)} (${percent(low)} to ${percent(high)})`, LEFT, y, TEXTS[row.tone], "left")
      );
  });
  return found;
}

export function intervalsHeight(element, rows) {
  return HEAD + total(placed(element, rows, isWide())) * ROW + FOOT;
}

export function intervals(element, rows) {
  const wide = isWide();
  const at = placed(element, rows, wide);
  const known = rows.map((row, i) => ({ row, y: at[i].middle })).filter(
    ({ row }) => row.interval && row.interval.centre > LEFT && row.interval.centre < RIGHT
  );
  const lines = rows.flatMap((row, i) => [
    segment(0, 1, at[i].end, at[i].end, css("--line"), 1),
    ...(row.interval ? [rectangle(row, at[i].middle), ...bar(row, at[i].middle)] : []),
  ]).map((shape) => (shape.x0 === 0 && shape.x1 === 1 ? { ...shape, xref: "paper", layer: "below" } : shape));
  const zero = {
    type: "line", x0: 0, x1: 0, y0: 0, y1: 1, yref: "paper", layer: "below", line: { color: css("--ink-2"), width: 1 }
  };
  const marks = {
    type: "scatter", mode: "markers", x: known.map(({ row }) => row.interval.centre), y: known.map(({ y }) => y),
    hovertemplate: "%{text}<extra></extra>",
    text: known.map(
      ({ row }) => inert(
        `${row.title}: ${percent(row.interval.centre)} (${percent(row.interval.low)} to ${percent(row.interval.high)})`
      )
    ),
    marker: {
      opacity: 1, size: known.map(({ row }) => (row.tone === "quiet" ? 8 : 10)),
      symbol: known.map(({ row }) => (row.tone === "quiet" ? "square" : "circle")),
      color: known.map(({ row }) => (row.tone === "open" ? css("--surface") : css(INKS[row.tone]))),
      line: {
        width: known.map(({ row }) => (row.tone === "open" ? 1.75 : 0)),
        color: known.map(({ row }) => css(INKS[row.tone]))
      },
    },
  };
  const shown = element.clientWidth < 420 ? TICKS.filter((_, i) => i !== 2 && i !== 4) : TICKS;
  return draw(element, [marks], {
    height: HEAD + total(at) * ROW + FOOT, margin: { t: HEAD, r: 12, b: FOOT, l: 12 }, shapes: [zero, ...lines],
    annotations: notes(rows, wide, at),
    xaxis: {
      range: [LEFT, RIGHT], tickangle: 0, tickvals: shown.map((tick) => Math.log1p(tick)),
      ticktext: shown.map((tick) => (tick ? percent(Math.log1p(tick)) : "0")),
    },
    yaxis: { range: [total(at) - 0.5, -0.5], showgrid: false, showticklabels: false },
  });
}
