// A span dragged across one chart is marked in all charts and becomes the range in the URL of the page; a double-click
// goes back.

import { node, percent } from "./svg-nodes.js";

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

// Marks the selected bins, `[from, to]` inclusive, in a drawn chart; null removes the mark.
export function select({ found }, view, bins) {
  found.plot.querySelector(":scope > .sel")?.remove();
  if (!bins) return;
  const { count } = view.window;
  found.plot.append(node("rect", {
    class: "sel", x: percent(bins[0] / count), width: percent((bins[1] + 1 - bins[0]) / count), y: 18,
    height: found.foot - 18,
  }));
}

export function zoomBins(view, bins) {
  const { first, step } = view.window;
  zoomTo(first + bins[0] * step, first + (bins[1] + 1) * step);
}

// `bin(event)` gives the bin under the pointer, null outside; `show(bins)` marks the selection in every chart.
export function zoomable(box, { bin, show, view }) {
  let from = null;
  const span = (event) => {
    const to = bin(event);
    return from.bin === null || to === null ? null : [Math.min(from.bin, to), Math.max(from.bin, to)];
  };
  const dragged = (event) => Math.abs(event.clientX - from.x) >= LEAST;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "touch" || event.button !== 0) return;
    from = { x: event.clientX, bin: bin(event) };
    box.setPointerCapture(event.pointerId);
  });
  box.addEventListener("pointermove", (event) => {
    if (from && dragged(event)) show(span(event));
  });
  box.addEventListener("pointerup", (event) => {
    if (!from) return;
    const bins = dragged(event) ? span(event) : null;
    from = null;
    show(null);
    if (bins) zoomBins(view(), bins);
  });
  box.addEventListener("pointercancel", () => { from = null; show(null); });
  box.addEventListener("dblclick", zoomOut);
}
