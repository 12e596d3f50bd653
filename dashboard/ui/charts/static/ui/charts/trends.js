// The driving charts of a model: one crosshair through all charts, toggles, zoom, enlarged charts and live data.

import { moment } from "./axis.js";
import { saveTrend } from "./export-image.js";
import { drawTrend } from "./trend-drawing.js";
import { connectEnlarge } from "./trend-enlarge.js";
import { binAt, cross, readings, said } from "./trend-pointer.js";
import { connectLegend } from "./trend-series.js";
import { select, zoomBins, zoomOut, zoomable } from "./zoom.js";

const HEIGHTS = { large: 218, small: 118 };
const LIVE = 20000;
const AT_ONCE = 2;
const holder = document.getElementById("trend-charts");
const legend = document.querySelector("[data-legend]");
const speech = document.querySelector("[data-speech]");

const view = { hidden: new Set(), week: null, window: null, marks: [] };
let data = null;
let charts = [];
let place = null;
let pointed = null;
let selected = null;
let anchor = null;
let turn = 0;

// The data has ISO 8601 times; charts need milliseconds.
function take(found) {
  const { window, marks, charts: drawn } = found;
  view.window = {
    first: Date.parse(window.first), last: Date.parse(window.last), step: window.step_seconds * 1000,
    count: window.count,
  };
  view.marks = marks.map((mark) => (
    { ...mark, at: Date.parse(mark.at), until: mark.until ? Date.parse(mark.until) : null }
  ));
  drawn.forEach((chart) => chart.lines.forEach((line) => line.dots.forEach((dot) => { dot.at = Date.parse(dot.at); })));
  data = found;
}

const chartOf = (key) => data.charts.find((chart) => chart.key === key);

function figures() {
  return data.charts.flatMap((chart) => {
    const figure = holder.querySelector(`[data-chart="${CSS.escape(chart.key)}"]`);
    const box = figure?.querySelector("[data-plot]");
    if (!box) return [];
    const now = figure.querySelector("[data-now]");
    return [{ chart, figure, box, now, size: figure.dataset.size, found: null }];
  });
}

// Draws a few charts at a time, so that the page responds in between. Charts of a folded part are drawn when it opens.
async function drawAll() {
  turn += 1;
  const mine = turn;
  const widths = charts.map(({ box }) => (box.closest("details.more:not([open])") ? 0 : box.clientWidth));
  for (const [i, one] of charts.entries()) {
    if (mine !== turn) return;
    one.found = widths[i] ? drawTrend(one.box, one.chart, view, HEIGHTS[one.size], widths[i]) : null;
    if (one.found && selected) select(one, view, selected);
    if (i % AT_ONCE === AT_ONCE - 1) await new Promise((done) => { setTimeout(done); });
  }
  holder.dataset.drawn = drawn().length;
  if (place !== null) point(place, pointed);
}

const drawn = () => charts.filter(({ found }) => found);

// Moves the crosshair to a bin; the tooltip follows the pointer, or with the keyboard shows in every large chart.
function point(i, at = null) {
  [place, pointed] = [i, at];
  holder.classList.toggle("crossed", i !== null);
  for (const one of drawn()) {
    const tip = at ? at.one === one : one.size === "large";
    cross(one, view, i, { tip, top: at ? at.top : HEIGHTS.large / 2 });
  }
}

function mark(bins) {
  selected = bins;
  drawn().forEach((one) => select(one, view, bins));
}

function speak() {
  if (place === null) return;
  const large = drawn().filter(({ size }) => size === "large");
  speech.textContent = large.map(({ chart, found }) => {
    const { head, rows } = readings(chart, found.lines, view, place);
    return `${chart.title}, ${head}; ${rows.map(({ name, text }) => `${name} ${text}`).join(", ")}`;
  }).join(". ");
}

function connect(one) {
  const { box } = one;
  let frame = 0;
  box.addEventListener("pointermove", (event) => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => {
      if (!one.found) return;
      const i = binAt(one, view, event.clientX);
      if (i === null) point(null);
      else point(i, { one, top: event.clientY - box.getBoundingClientRect().top });
    });
  });
  box.addEventListener("pointerleave", () => { cancelAnimationFrame(frame); point(null); });
  zoomable(box, { bin: (event) => (one.found ? binAt(one, view, event.clientX) : null), show: mark, view: () => view });
}

// The newest values of a chart whose metric is not evaluated.
function writeNewest() {
  const { count } = view.window;
  for (const { chart, figure } of charts) {
    for (const line of chart.lines) {
      const value = figure.querySelector(`[data-slot="${line.slot}"] [data-value]`);
      if (!value || line.dots.length) continue;
      const known = (i) => (line.values[i] ?? line.below?.[i] ?? null) !== null;
      value.textContent = said(chart, line, [count - 1, count - 2].find(known) ?? count - 1);
    }
  }
}

// Polls the numbers: draws only after a change, and shows a note if more than the numbers changed.
async function refresh() {
  const address = holder.dataset.liveJson;
  if (!address || document.hidden || selected || place !== null || document.body.dataset.ended) return;
  try {
    const known = holder.dataset.etag ? { "If-None-Match": holder.dataset.etag } : {};
    const answer = await fetch(address, { headers: known, cache: "no-store", signal: AbortSignal.timeout(LIVE) });
    if (new URL(answer.url).pathname === document.body.dataset.wayIn) {
      document.dispatchEvent(new CustomEvent("cw:ended"));
      return;
    }
    if (answer.status !== 200 && answer.status !== 304) return;
    document.dispatchEvent(new CustomEvent("cw:checked"));
    if (answer.status === 304) return;
    holder.dataset.etag = answer.headers.get("ETag") || "";
    const newer = await answer.json();
    if (JSON.stringify(newer.said) !== JSON.stringify(data.said)) {
      const note = document.getElementById("said");
      if (note) note.hidden = false;
      return;
    }
    take(newer);
    charts.forEach((one) => { one.chart = chartOf(one.chart.key) ?? one.chart; });
    drawAll();
    enlarged?.draw();
    writeNewest();
  } catch {
    // No response: live.js shows the age of the page.
  }
}

function keys(event) {
  const last = view.window.count - 1;
  if (event.key === "Escape") { anchor = null; mark(null); point(null); }
  if (event.key === "Enter" && selected && anchor !== null) {
    event.preventDefault();
    zoomBins(view, selected);
    return;
  }
  if (event.key === "Backspace") { event.preventDefault(); zoomOut(); return; }
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!move) return;
  event.preventDefault();
  if (event.shiftKey && anchor === null) anchor = place ?? last;
  point(place === null ? last : Math.min(last, Math.max(0, place + move)));
  speak();
  if (event.shiftKey) mark([Math.min(anchor, place), Math.max(anchor, place)]);
  else if (anchor !== null) { anchor = null; mark(null); }
}

function save(key) {
  const one = charts.find(({ chart }) => chart.key === key);
  if (!one?.found) return;
  const { first, last } = view.window;
  const name = (document.querySelector("h1 bdi") ?? document.querySelector("h1")).textContent.trim();
  const day = new Date(first).toISOString().slice(0, 10);
  saveTrend(one, `${name}, ${moment(first)} to ${moment(last)}`, `${key}-${day}`);
}

take(JSON.parse(document.getElementById("trend-data").textContent));
charts = figures();
charts.forEach(connect);
const dialog = document.getElementById("enlarged");
const enlarged = dialog ? connectEnlarge(dialog, view, { chartOf }) : null;
connectLegend(legend, view, {
  address: () => holder.dataset.week, charts: () => data.charts, redraw: () => { drawAll(); enlarged?.draw(); },
});
holder.tabIndex = 0;
holder.addEventListener("keydown", (event) => { if (event.target === holder) keys(event); });
holder.addEventListener("blur", () => { anchor = null; mark(null); point(null); });
holder.addEventListener("click", (event) => {
  const button = event.target.closest("[data-enlarge], [data-png]");
  if (button?.dataset.enlarge) enlarged?.open(button.dataset.enlarge);
  if (button?.dataset.png) { save(button.dataset.png); button.closest("details").open = false; }
  if (event.target.closest('a[href="#trend-tables"]')) {
    document.getElementById("trend-tables").open = true;
    event.target.closest("details").open = false;
  }
});
holder.addEventListener("toggle", (event) => { if (event.target.matches("details.more")) drawAll(); }, true);
document.addEventListener("cw:zone", () => { drawAll(); enlarged?.draw(); });
let width = 0;
new ResizeObserver(() => {
  if (holder.clientWidth === width) return;
  width = holder.clientWidth;
  requestAnimationFrame(drawAll);
}).observe(holder);
if (holder.dataset.liveJson) setInterval(refresh, LIVE);
