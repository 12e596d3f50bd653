// The latency heat map: one column per time bin, one row per log bucket, five steps of one hue by number of calls.

import { figure, moment, timeTicks } from "./axis.js";
import { node, percent } from "./svg-nodes.js";

const STEPS = 5;
const HEIGHT = 216;
const FOOT = 20;
const GUTTER = 52;
const PER_LABEL = 90;

// The largest count of each step: squares, so that the mode stands out and single calls remain visible.
export function stepLimits(most) {
  const limits = Array.from({ length: STEPS }, (_, i) => Math.ceil(most * ((i + 1) / STEPS) ** 2));
  return [...new Set(limits)];
}

const stepOf = (limits, count) => limits.findIndex((limit) => count <= limit);

function cells(version, limits, rows) {
  const paths = limits.map(() => []);
  for (const { place, row, counts } of version.columns)
    counts.forEach((count, i) => {
      if (count) paths[stepOf(limits, count)].push(`M${place} ${rows - row - i - 1}h1v1h-1z`);
    });
  return paths.map((parts) => parts.join(""));
}

function axes(edges, unit) {
  const rows = edges.length - 1;
  const column = node("svg", { class: "chart ya", width: GUTTER, height: HEIGHT, "aria-hidden": "true" });
  const every = Math.max(1, Math.ceil(rows / 6));
  for (let row = 0; row <= rows; row += every) {
    const y = (HEIGHT - FOOT) * (1 - row / rows);
    const text = `${figure(edges[row])}${row + every > rows ? ` ${unit}` : ""}`;
    column.append(node("text", { class: "end", x: GUTTER - 6, y: Math.max(10, y + 4) }, text));
  }
  return column;
}

function timeLabels(plot, window, width) {
  const [first, last] = [Date.parse(window.first), Date.parse(window.last)];
  const { ticks, label } = timeTicks(first, last, Math.max(2, Math.floor(width / PER_LABEL)));
  for (const tick of ticks) {
    const place = (tick - first) / (last - first);
    const css = place < 0.04 ? "" : place > 0.96 ? "end" : "cen";
    plot.append(node("text", { class: css, x: percent(place), y: HEIGHT - 4 }, label(tick)));
  }
}

function reading(data, version, share, height) {
  const { window, map } = data;
  const place = Math.min(window.count - 1, Math.floor(share * window.count));
  const rows = map.edges.length - 1;
  const row = Math.floor((1 - height) * rows);
  const column = version.columns.find((one) => one.place === place);
  const counts = column?.counts ?? [];
  const count = counts[row - (column?.row ?? 0)] ?? 0;
  const total = counts.reduce((sum, one) => sum + one, 0);
  const at = moment(Date.parse(window.first) + place * window.step_seconds * 1000);
  const span = `${figure(map.edges[row])} to ${figure(map.edges[row + 1])} ${map.unit}`;
  const part = total ? `, ${figure(Math.round((1000 * count) / total) / 10)}% of this interval` : "";
  return `${at}: ${count.toLocaleString("en")} calls from ${span}${part}`;
}

function drawMap(data, version, limits, width) {
  const { window, map } = data;
  const rows = map.edges.length - 1;
  const figureBox = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const name = document.createElement("bdi");
  const read = document.createElement("span");
  const box = document.createElement("div");
  name.textContent = version.name;
  read.className = "small dim";
  read.textContent = ` ${version.calls.toLocaleString("en")} calls`;
  caption.append(name, read);
  box.className = "plot2 heat";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", `Latency of ${version.name} over time: ${version.calls} calls in ${rows} buckets from `
    + `${figure(map.edges[0])} to ${figure(map.edges[rows])} ${map.unit}`);
  const plot = node("svg", { class: "chart pl", height: HEIGHT, "aria-hidden": "true" });
  const stretched = node("svg", {
    x: 0, y: 0, width: "100%", height: HEIGHT - FOOT, viewBox: `0 0 ${window.count} ${rows}`,
    preserveAspectRatio: "none", class: "ns cells",
  });
  cells(version, limits, rows).forEach((d, i) => stretched.append(node("path", { class: `hm${i + 1}`, d })));
  plot.append(stretched);
  timeLabels(plot, window, width - GUTTER);
  box.append(axes(map.edges, map.unit), plot);
  const whole = read.textContent;
  box.addEventListener("pointermove", (event) => {
    const around = stretched.getBoundingClientRect();
    const [x, y] = [(event.clientX - around.left) / around.width, (event.clientY - around.top) / around.height];
    read.textContent = x < 0 || x > 1 || y < 0 || y >= 1 ? whole : ` ${reading(data, version, x, y)}`;
  });
  box.addEventListener("pointerleave", () => { read.textContent = whole; });
  figureBox.append(caption, box);
  return figureBox;
}

function drawSteps(list, limits) {
  let from = 1;
  list.replaceChildren(...limits.map((limit, i) => {
    const entry = document.createElement("li");
    const text = from === limit ? `${limit}` : `${from.toLocaleString("en")}–${limit.toLocaleString("en")}`;
    const symbol = node("svg", { viewBox: "0 0 11 11", width: 11, height: 11, "aria-hidden": "true" });
    symbol.append(node("rect", { class: `hm${i + 1}`, width: 11, height: 11 }));
    entry.className = "state";
    entry.append(symbol, `${text}${i === limits.length - 1 ? " calls" : ""}`);
    from = limit + 1;
    return entry;
  }));
}

// `slot` chooses one version; empty draws both on the same rows and steps.
export function drawMaps(content, steps, data, slot) {
  const { versions, most } = data.map;
  const shown = versions.filter((version) => version.calls && (!slot || String(version.slot) === slot));
  if (!shown.length) {
    const line = document.createElement("p");
    line.className = "dim small";
    line.textContent = "No timed call in this range.";
    content.replaceChildren(line);
    steps.replaceChildren();
    return;
  }
  const limits = stepLimits(most);
  drawSteps(steps, limits);
  content.dataset.shown = shown.length;
  const width = content.clientWidth / (content.clientWidth > 900 ? shown.length : 1);
  content.replaceChildren(...shown.map((version) => drawMap(data, version, limits, width)));
}
