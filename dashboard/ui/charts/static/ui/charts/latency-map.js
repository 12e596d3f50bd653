// The latency heat map, by Plotly: one column per time bin, one row per log bucket, colour by number of calls.

import { figure, moment, timeTicks } from "./axis.js";
import { make } from "./elements.js";
import { node } from "./svg-nodes.js";
import { css } from "./theme.js";

const HEIGHT = 240;
const PER_LABEL = 70;
const MARGIN = { t: 8, r: 8, b: 24, l: 48 };
const PALEST = 0.1;
const STEPS = [0.2, 0.4, 0.6, 0.8, 1];
// A drag on a touch screen scrolls the page.
const DRAG = matchMedia("(pointer: coarse)").matches ? false : "zoom";
const CONFIG = { displayModeBar: false, responsive: true, showTips: false, doubleClick: false };

const count = (calls) => calls.toLocaleString("en");
const bucket = ({ edges, unit }, row) => `${figure(edges[row])} to ${figure(edges[row + 1])} ${unit}`;

// Squares make the mode and single calls visible together, so the colour follows the square root.
function cells({ columns }, { window, map }) {
  const grid = () => map.edges.slice(1).map(() => Array(window.count).fill(null));
  const [colours, texts] = [grid(), grid()];
  for (const { place, row, counts } of columns) {
    const at = moment(Date.parse(window.first) + place * window.step_seconds * 1000);
    const total = counts.reduce((sum, one) => sum + one, 0);
    counts.forEach((calls, i) => {
      if (!calls) return;
      colours[row + i][place] = Math.sqrt(calls);
      const share = figure(Math.round((1000 * calls) / total) / 10);
      texts[row + i][place] = `${at}<br>${bucket(map, row + i)}<br>${count(calls)} calls, ${share}% of this interval`;
    });
  }
  return { colours, texts };
}

function faded(ink, share) {
  const parts = [1, 3, 5].map((from) => parseInt(ink.slice(from, from + 2), 16));
  return `rgba(${parts.join(",")},${share})`;
}

function trace(version, data) {
  const { window, map } = data;
  const { colours, texts } = cells(version, data);
  const ink = css("--series-2");
  return {
    type: "heatmap", z: colours, text: texts, hoverinfo: "text", hoverongaps: false, zmin: 0, zmax: Math.sqrt(map.most),
    x: Array.from({ length: window.count + 1 }, (_, i) => Date.parse(window.first) + i * window.step_seconds * 1000),
    y: map.edges,
    colorscale: [[0, faded(ink, PALEST)], [1, faded(ink, 1)]], showscale: false,
  };
}

// The scale is not Plotly's: its colour bar sets style attributes, which the policy blocks.
function drawScale(list, most) {
  const steps = new Map(STEPS.map((share) => [Math.ceil(most * share ** 2), PALEST + (1 - PALEST) * share]));
  list.replaceChildren(...[...steps].map(([calls, opacity]) => {
    const entry = make("li", "state");
    const symbol = node("svg", { viewBox: "0 0 11 11", width: 11, height: 11, "aria-hidden": "true" });
    symbol.append(node("rect", { class: "hm", "fill-opacity": opacity, width: 11, height: 11 }));
    entry.append(symbol, count(calls) + (calls === most ? " calls" : ""));
    return entry;
  }));
}

function layout({ window, map }, text, zoom, width) {
  const axis = { gridcolor: css("--grid"), zeroline: false, ticks: "" };
  const x = zoom?.x ?? [Date.parse(window.first), Date.parse(window.last)];
  const y = zoom?.y ?? [map.edges[0], map.edges[map.edges.length - 1]].map(Math.log10);
  const { ticks, label } = timeTicks(...x, Math.max(2, Math.floor((width - MARGIN.l) / PER_LABEL)));
  return {
    height: HEIGHT, margin: MARGIN, font: text, dragmode: DRAG,
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", hovermode: "closest",
    hoverlabel: {
      align: "left", bgcolor: css("--surface"), bordercolor: css("--line-2"),
      font: { ...text, size: 12, color: css("--ink") },
    },
    xaxis: { ...axis, range: x, showgrid: false, tickangle: 0, tickvals: ticks, ticktext: ticks.map(label) },
    yaxis: { ...axis, range: y, type: "log", nticks: 6, minor: { showgrid: false } },
  };
}

function drawFrame(version, { map }) {
  const frame = make("figure", "");
  const caption = make("figcaption", "");
  const box = make("div", "heat");
  const calls = ` ${count(version.calls)} calls, ${map.unit}`;
  caption.append(make("bdi", "", version.name), make("span", "small dim", calls));
  box.setAttribute("role", "img");
  const [low, high] = [map.edges[0], map.edges[map.edges.length - 1]].map(figure);
  box.setAttribute("aria-label", `Latency of ${version.name} over time: ${version.calls} calls in `
    + `${map.edges.length - 1} buckets from ${low} to ${high} ${map.unit}`);
  frame.append(caption, box);
  return { frame, box, version };
}

function sumRows({ columns }, rows) {
  const sums = Array(rows).fill(0);
  for (const { row, counts } of columns) counts.forEach((calls, i) => { sums[row + i] += calls; });
  return sums;
}

// The calls per bucket of the whole range, slowest first.
function drawTable(versions, { map }) {
  const twin = make("details", "twin inside");
  const scroll = make("div", "scroll");
  const table = make("table", "");
  const sums = versions.map((version) => sumRows(version, map.edges.length - 1));
  const head = table.createTHead().insertRow();
  const heads = [make("th", "", "Latency"), ...versions.map(({ name }) => make("th", "r", name))];
  heads.forEach((cell) => { cell.scope = "col"; });
  head.append(...heads);
  const body = table.createTBody();
  for (let row = map.edges.length - 2; row >= 0; row -= 1) {
    if (!sums.some((one) => one[row])) continue;
    const name = make("th", "", bucket(map, row));
    name.scope = "row";
    body.insertRow().append(name, ...sums.map((one) => make("td", "r num", count(one[row]))));
  }
  scroll.tabIndex = 0;
  scroll.setAttribute("role", "region");
  scroll.setAttribute("aria-label", "Calls per bucket");
  scroll.append(table);
  twin.append(make("summary", "", "Calls per bucket as a table"), scroll);
  return twin;
}

// Returns a function that draws the maps of one version (`slot`) or of both. A zoom applies to all maps; `reset` ends
// it.
export function connectMaps(content, scale, reset) {
  let [zoom, shown] = [null, null];

  function draw() {
    const { Plotly, data, frames } = shown;
    const text = { family: css("--font"), size: 11, color: css("--ink-3") };
    for (const { box, version } of frames)
      Plotly.react(box, [trace(version, data)], layout(data, text, zoom, box.clientWidth), CONFIG);
    reset.hidden = !zoom;
  }

  function zoomTo(ranges) {
    zoom = ranges;
    if (shown) draw();
  }

  reset.addEventListener("click", () => zoomTo(null));
  return (Plotly, data, slot) => {
    shown?.frames.forEach(({ box }) => Plotly.purge(box));
    shown = null;
    scale.replaceChildren();
    const versions = data.map.versions.filter((version) => version.calls && (!slot || String(version.slot) === slot));
    if (!versions.length) {
      content.replaceChildren(make("p", "dim small", "No timed call in this range."));
      return;
    }
    const frames = versions.map((version) => drawFrame(version, data));
    drawScale(scale, data.map.most);
    content.dataset.shown = frames.length;
    content.replaceChildren(...frames.map(({ frame }) => frame), drawTable(versions, data));
    shown = { Plotly, data, frames };
    draw();
    frames.forEach(({ box }) => {
      box.on("plotly_relayout", (changed) => {
        if (!Object.keys(changed).some((key) => /^[xy]axis/.test(key))) return;
        zoomTo({ x: [...box.layout.xaxis.range], y: [...box.layout.yaxis.range] });
      });
      box.on("plotly_doubleclick", () => zoomTo(null));
    });
  };
}
