// A chart at 440 px in a dialog: Escape closes it and the focus returns to its button.

import { drawTrend } from "./trend-drawing.js";
import { binAt, cross } from "./trend-pointer.js";

const HEIGHT = 440;

export function connectEnlarge(dialog, view, { chartOf }) {
  const [box, title, unit] = ["[data-big]", "[data-title]", "[data-unit]"].map((name) => dialog.querySelector(name));
  const log = dialog.querySelector("[data-log]");
  const shown = { chart: null, box, now: null, found: null };
  let place = null;

  const scaled = () => ({ ...view, log: log.getAttribute("aria-pressed") === "true" });

  function draw() {
    if (!dialog.open || !shown.chart) return;
    shown.chart = chartOf(shown.chart.key) ?? shown.chart;
    shown.found = drawTrend(box, shown.chart, scaled(), HEIGHT);
  }

  function move(i, top = HEIGHT / 2) {
    place = i;
    cross(shown, scaled(), i, { tip: true, top });
  }

  function open(key) {
    const chart = chartOf(key);
    if (!chart) return;
    shown.chart = chart;
    title.textContent = chart.title;
    unit.textContent = chart.unit;
    box.setAttribute("aria-label", chart.conclusion);
    log.setAttribute("aria-pressed", "false");
    dialog.showModal();
    draw();
  }

  log.addEventListener("click", () => {
    log.setAttribute("aria-pressed", String(log.getAttribute("aria-pressed") !== "true"));
    draw();
  });
  dialog.querySelector("[data-close]").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("close", () => { shown.chart = null; box.replaceChildren(); });
  box.addEventListener("pointermove", (event) => {
    move(binAt(shown, view, event.clientX), event.clientY - box.getBoundingClientRect().top);
  });
  box.addEventListener("pointerleave", () => move(null));
  dialog.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const last = view.window.count - 1;
    move(place === null ? last : Math.min(last, Math.max(0, place + step)));
  });
  new ResizeObserver(draw).observe(dialog);
  return { open, draw };
}
