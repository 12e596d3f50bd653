// The crosshair through all charts, the tooltip at the pointer, and the marks of the values at the crosshair.

import { figure, moment } from "./axis.js";
import { node, percent, shape } from "./svg-nodes.js";

// A bin without a value can have a bound (the end of the engine's first bucket) and a mean.
export function said(chart, line, i) {
  const value = line.values[i], below = line.below?.[i];
  if ((value === null || value === undefined) && below !== undefined && below !== null)
    return `<\u00a0${figure(below)}, mean ${figure(line.mean[i])}`;
  return figure(value) + (value === null || value === undefined ? "" : chart.suffix || unit(chart));
}

// The tooltip has room for a short unit only: "ms, wall time" is "ms".
const unit = (chart) => {
  const short = chart.unit.split(",")[0];
  return /^(ms|s|µs|GiB|MiB)$/.test(short) ? `\u00a0${short}` : "";
};

export function duration(step) {
  const minutes = step / 60000;
  return minutes % 60 ? `${minutes}\u00a0min` : `${minutes / 60}\u00a0h`;
}

// The change from the baseline to the evaluated version, computed from the two displayed values.
function change(chart, lines, i) {
  const [base, value] = [1, 2].map((slot) => lines.find((line) => line.slot === slot)?.values[i] ?? null);
  if (base === null || value === null) return "";
  const sign = (number) => (number > 0 ? "+" : "");
  if (chart.suffix === "%") return `${sign(value - base)}${figure(value - base)}\u00a0pts`;
  if (!base) return "";
  const share = 100 * (value / base - 1);
  return `${sign(share)}${figure(Math.abs(share) < 10 ? Math.round(10 * share) / 10 : Math.round(share))}%`;
}

export function readings(chart, lines, view, i) {
  const rows = lines.filter((line) => !line.dots.length).map(
    (line) => ({ slot: line.slot, name: line.name, text: said(chart, line, i) })
  );
  const past = view.week?.[chart.key];
  if (past) rows.push({ slot: 0, name: "same time last week", text: said(chart, { values: past }, i) });
  const { first, step } = view.window;
  const changed = change(chart, lines, i);
  return { head: `${moment(first + i * step)}, ${duration(step)}${changed ? `: ${changed}` : ""}`, rows };
}

function tipOf(box) {
  let tip = box.querySelector(":scope > .tip");
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "tip";
    tip.setAttribute("aria-hidden", "true");
    box.append(tip);
  }
  return tip;
}

export const symbol = (slot) => {
  const drawn = node("svg", { viewBox: "-4.500 -4.500 9 9", width: 9, height: 9 });
  drawn.append(slot ? shape(slot, 0, 0).firstChild : node("path", { class: "l week", d: "M-4.500 0h9" }));
  return drawn;
};

function fill(target, { head, rows }) {
  const title = document.createElement("b");
  title.textContent = head;
  target.replaceChildren(title, ...rows.map(({ slot, name, text }) => {
    const row = document.createElement("span");
    const label = document.createElement("bdi");
    const value = document.createElement("span");
    label.textContent = name;
    value.className = "v";
    value.textContent = text;
    row.append(symbol(slot), label, value);
    return row;
  }));
}

// Draws the crosshair of one chart at bin `i`; `tip` shows its tooltip, at the height `top` of the pointer.
export function cross(one, view, i, { tip, top }) {
  clear(one);
  if (i === null) return;
  const { chart, box, now, found } = one;
  const place = found.middle(i);
  const mark = node("g", { class: "cross" });
  mark.append(node("line", { class: "xh", x1: percent(place), x2: percent(place), y1: 18, y2: found.foot }));
  for (const line of found.lines) {
    const level = line.dots.length ? null : found.y(line.values[i]);
    if (level !== null) mark.append(shape(line.slot, place, level));
  }
  found.plot.append(mark);
  const read = readings(chart, found.lines, view, i);
  if (now) fill(now, read);
  if (tip) showTip(one, read, place, top);
}

function showTip({ box, found }, read, place, top) {
  const tip = tipOf(box);
  fill(tip, read);
  const gutter = box.clientWidth - found.plot.clientWidth;
  const x = gutter + place * found.plot.clientWidth;
  const before = place > 0.5;
  tip.style.left = before ? "auto" : `${x + 12}px`;
  tip.style.right = before ? `${box.clientWidth - x + 12}px` : "auto";
  tip.style.top = `${Math.max(0, Math.min(top - 20, found.height - tip.offsetHeight - 24))}px`;
}

export function clear({ box, now, found }) {
  found?.plot.querySelector(":scope > .cross")?.remove();
  box.querySelector(":scope > .tip")?.remove();
  if (now) now.replaceChildren();
}

// The bin under the pointer, or null next to the plot.
export function binAt({ found }, view, clientX) {
  const { left, width } = found.plot.getBoundingClientRect();
  const place = (clientX - left) / width;
  if (place < 0 || place > 1) return null;
  return Math.min(view.window.count - 1, Math.floor(place * view.window.count));
}
