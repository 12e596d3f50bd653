// A span dragged across one chart is marked in all charts and becomes the range in the URL of the page; a double-click
// goes back.

import { css } from "./theme.js";

const LEAST = 8;

export function zoomTo(first, last) {
  const to = new URL(location.href);
  for (const name of ["range", "until"]) to.searchParams.delete(name);
  to.searchParams.set("from", new Date(first).toISOString().slice(0, 16));
  to.searchParams.set("to", new Date(last).toISOString().slice(0, 16));
  location.assign(to);
}

// Leaving a zoom returns to the previous range, else to the default range.
export function zoomOut() {
  const to = new URL(location.href);
  if (!to.searchParams.has("from")) return;
  for (const name of ["from", "to"]) to.searchParams.delete(name);
  location.assign(to);
}

// `selected()` gives the two times of the span, or null.
export const selection = (selected) => ({
  id: "selection",
  afterDraw(chart) {
    const span = selected();
    if (!span) return;
    const { ctx, chartArea: area, scales: { x } } = chart;
    const [left, right] = span.map((at) => Math.min(area.right, Math.max(area.left, x.getPixelForValue(at))));
    ctx.save();
    ctx.globalAlpha = 0.16;
    ctx.fillStyle = css("--accent");
    ctx.fillRect(Math.min(left, right), area.top, Math.abs(right - left), area.bottom - area.top);
    ctx.restore();
  },
});

// `snap(time)` gives the bin's beginning, `step` its length; `show(span)` draws the selection in every chart.
export function zoomable(chart, canvas, { snap, step, show }) {
  let from = null;
  const time = (event) => {
    const { left, right } = chart.chartArea;
    const at = event.clientX - canvas.getBoundingClientRect().left;
    return chart.scales.x.getValueForPixel(Math.min(right, Math.max(left, at)));
  };
  canvas.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    from = { x: event.clientX, at: time(event) };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (from && Math.abs(event.clientX - from.x) >= LEAST) show([from.at, time(event)]);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!from) return;
    const ends = [from.at, time(event)].sort((a, b) => a - b);
    const dragged = Math.abs(event.clientX - from.x) >= LEAST;
    from = null;
    show(null);
    if (dragged) zoomTo(snap(ends[0]), snap(ends[1]) + step);
  });
  canvas.addEventListener("pointercancel", () => { from = null; show(null); });
  canvas.addEventListener("dblclick", zoomOut);
}
