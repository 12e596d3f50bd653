// One driving chart as SVG: an axis that fits, lines with gaps, intervals, last week, deployments, alerts and budget.
// Lines and areas stretch with the box; text and marks are placed in percent and keep their size.

import { figure, tickLabel, timeTicks } from "./axis.js";
import { placeLabels } from "./mark-labels.js";
import { alone, fitAxis, runs } from "./scale.js";
import { at, node, percent, shape } from "./svg-nodes.js";

const WIDE = 1000;
const GUTTER = 44;
const ABOVE = 18;
const BELOW = 20;
const NARROW = 300; // a plot without room for words next to its lines

const deployed = (mark) => mark.kind === "deployment" || mark.kind === "posted";

// The geometry of a chart: `view` has the time window, the marks, the hidden series, last week and the scale.
export function geometry(chart, view, height) {
  const lines = chart.lines.filter((line) => !view.hidden.has(String(line.slot)));
  const shown = lines.length ? lines : chart.lines;
  const bands = view.hidden.has("ci") ? [] : shown.flatMap((line) => [...(line.low ?? []), ...(line.high ?? [])]);
  const values = shown.flatMap((line) => [...line.values, ...line.dots.map((dot) => dot.value)]);
  const axis = fitAxis(
    [values, view.week?.[chart.key] ?? [], chart.budget ? [chart.budget] : []].flat(),
    { fromZero: chart.from_zero, soft: bands, log: view.log }
  );
  const foot = height - BELOW;
  const y = (value) => {
    const share = value === null || value === undefined ? null : axis.at(value);
    return share === null || !Number.isFinite(share) ? null : foot - share * (foot - ABOVE);
  };
  const { first, last, step } = view.window;
  const share = (time) => (time - first) / (last - first);
  return { lines, axis, foot, height, y, share, middle: (i) => share(first + (i + 0.5) * step) };
}

function path(values, { y, middle }) {
  return runs(values.map(y)).map(([from, to]) => {
    const points = [];
    for (let i = from; i <= to; i += 1) points.push(`${(WIDE * middle(i)).toFixed(1)} ${y(values[i]).toFixed(1)}`);
    return `M${points.join("L")}`;
  }).join("");
}

function area(line, { y, middle, foot }) {
  const inside = (value) => Math.min(foot, Math.max(0, y(value) ?? foot));
  const known = (line.high ?? []).map((high, i) => (line.low[i] === null ? null : high));
  return runs(known).map(([from, to]) => {
    const point = (i, value) => `${(WIDE * middle(i)).toFixed(1)} ${inside(value).toFixed(1)}`;
    const places = Array.from({ length: to - from + 1 }, (_, i) => from + i);
    const edge = places.map((i) => point(i, line.high[i]));
    const back = places.reverse().map((i) => point(i, line.low[i]));
    return `M${[...edge, ...back].join("L")}Z`;
  }).join("");
}

// The interval of a bin without neighbours has no width in an area.
function whiskers(line, { y, middle }) {
  return runs(line.high ?? []).filter(([from, to]) => from === to).map(([i]) => node(
    "line", { class: `wh s${line.slot}`, x1: percent(middle(i)), x2: percent(middle(i)), y1: y(line.low[i]),
      y2: y(line.high[i]) }
  ));
}

function axisColumn(chart, { axis, y, foot, height }) {
  const column = node("svg", { class: "chart ya", width: GUTTER, height, "aria-hidden": "true" });
  for (const tick of axis.ticks) {
    const label = node("text", { class: "end", x: GUTTER - 6, y: y(tick) + 4 }, tickLabel(axis, tick) + chart.suffix);
    column.append(label);
  }
  if (axis.cut) column.append(node("path", { class: "zig", d: `M${GUTTER} ${foot - 4}v3l-3 2 6 3-6 3 3 2v3` }));
  return column;
}

function timeAxis(plot, view, { share, height }, width) {
  const { first, last } = view.window;
  const most = Math.max(2, Math.floor(width / 78));
  const { ticks, label } = timeTicks(first, last, most);
  for (const tick of ticks) {
    const place = share(tick);
    const css = place * width < 18 ? "" : (1 - place) * width < 18 ? "end" : "cen";
    plot.append(node("text", { class: css, x: percent(place), y: height - 5 }, label(tick)));
  }
}

function onset(plot, mark, { share, foot }, width) {
  const [from, to] = [Math.max(0, share(mark.at)), Math.min(1, share(mark.until))];
  const caution = mark.kind === "watch_onset";
  plot.append(node("rect", {
    class: `onsetf${caution ? " caution" : ""}`, x: percent(from), y: ABOVE, height: foot - ABOVE,
    width: (to - from) * width < 3 ? 3 : percent(to - from),
  }));
  if (width < NARROW) return;
  const before = to * width + 40 > width;
  plot.append(node(
    "text", { class: `${caution ? "wt" : "rb"} ${before ? "end" : ""}`, x: percent(before ? from : to),
      dx: before ? -4 : 4, y: foot - 5 }, "onset"
  ));
}

const GLYPHS = { deployment: "M0-4 4 0 0 4-4 0z", alert: "M0-4.500 4.500 3.500h-9z" };

function drawMarks(plot, view, { share, foot }, width) {
  const marks = view.marks.filter((mark) => !mark.until && share(mark.at) >= 0 && share(mark.at) <= 1);
  const labels = placeLabels(marks.map((mark) => ({
    x: share(mark.at) * width, text: mark.label, short: deployed(mark) ? undefined : mark.label,
    urgent: !deployed(mark), side: deployed(mark) ? "left" : "right",
  })), width);
  marks.forEach((mark, i) => {
    const x = percent(share(mark.at));
    const [line, glyph, ink] = deployed(mark)
      ? ["mk", "mkf", "mid"]
      : mark.kind === "rollback" ? ["al", "alf", "rb"] : ["alw", "wf", "wt"];
    const drawn = node("path", { class: glyph, d: GLYPHS[deployed(mark) ? "deployment" : "alert"] });
    drawn.append(node("title", {}, mark.text));
    plot.append(node("line", { class: line, x1: x, x2: x, y1: ABOVE - 2, y2: foot }), at(share(mark.at), 10, drawn));
    const { text, side } = labels[i];
    if (!text) return;
    const [css, dx] = side === "left" ? [`${ink} end`, -7] : [ink, 7];
    plot.append(node("text", { class: css, "data-mark": mark.kind, x, dx, y: 14 }, text));
  });
}

function drawBudget(plot, chart, { y }) {
  const level = chart.budget ? y(chart.budget) : null;
  if (level === null) return;
  plot.append(
    node("line", { class: "budget", x1: 0, x2: "100%", y1: level, y2: level }),
    node("text", { class: "wt", x: 2, y: level + (level < ABOVE + 14 ? 12 : -4) }, `budget ${figure(chart.budget)} s`)
  );
}

function drawLines(plot, chart, view, form) {
  const { lines, height } = form;
  const stretched = node("svg", {
    x: 0, y: 0, width: "100%", height, viewBox: `0 0 ${WIDE} ${height}`, preserveAspectRatio: "none", class: "ns",
  });
  // The evaluated version is drawn last, on top of its baseline.
  const order = [...lines].sort((a, b) => (a.slot === 2) - (b.slot === 2) || (a.slot === 1) - (b.slot === 1));
  const ci = !view.hidden.has("ci");
  if (ci) for (const line of order) stretched.append(node("path", { class: `a${line.slot}`, d: area(line, form) }));
  const past = view.week?.[chart.key];
  if (past) stretched.append(node("path", { class: "l week", d: path(past, form) }));
  for (const line of order) stretched.append(node("path", { class: `l s${line.slot}`, d: path(line.values, form) }));
  plot.append(stretched);
  for (const line of order) {
    if (ci) plot.append(...whiskers(line, form));
    drawPoints(plot, line, form);
  }
}

function drawPoints(plot, line, { y, middle, share }) {
  for (const i of alone(line.values)) plot.append(shape(line.slot, middle(i), y(line.values[i]), "alone"));
  for (const dot of line.dots) {
    const level = y(dot.value);
    if (level !== null) plot.append(shape(line.slot, share(dot.at), level));
  }
  const newest = line.values.findLastIndex((value) => value !== null);
  if (newest >= 0 && y(line.values[newest]) !== null)
    plot.append(shape(line.slot, middle(newest), y(line.values[newest])));
}

// Draws a chart into its box and returns its geometry, which the pointer needs. `outer` is the width of the box. It is
// measured before the first of several charts is drawn: each measurement after a change lays out the page again.
export function drawTrend(box, chart, view, height, outer = box.clientWidth) {
  const found = geometry(chart, view, height);
  const width = Math.max(120, outer - GUTTER);
  const plot = node("svg", { class: "chart pl", height, "aria-hidden": "true" });
  for (const tick of found.axis.ticks)
    plot.append(node("line", { class: "g", x1: 0, x2: "100%", y1: found.y(tick), y2: found.y(tick) }));
  view.marks.filter((mark) => mark.until && found.share(mark.until) >= 0 && found.share(mark.at) <= 1)
    .forEach((mark) => onset(plot, mark, found, width));
  timeAxis(plot, view, found, width);
  drawLines(plot, chart, view, found);
  drawBudget(plot, chart, found);
  drawMarks(plot, view, found, width);
  box.replaceChildren(axisColumn(chart, found), plot);
  return { ...found, plot, width };
}
