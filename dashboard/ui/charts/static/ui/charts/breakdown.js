// The breakdown by group: per group one row of three charts on common axes.

import { drawTrend } from "./trend-drawing.js";
import { binAt, cross } from "./trend-pointer.js";

const HEIGHT = 112;

function text(name, css, words) {
  const element = document.createElement(name);
  element.className = css;
  element.textContent = words;
  return element;
}

// The whole-range values follow the last colon of a conclusion.
const wholeRange = (chart) => chart.conclusion.split(", whole range: ").pop().replace(/\.$/, "");

function chartBox(chart) {
  const figure = document.createElement("figure");
  const caption = document.createElement("figcaption");
  const box = document.createElement("div");
  caption.className = "small";
  caption.append(
    text("b", "", chart.title), text("span", "dim", ` ${chart.unit}`), text("div", "mid", wholeRange(chart))
  );
  box.className = "plot2";
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", chart.conclusion);
  figure.append(caption, box);
  return { figure, box, chart, now: null, found: null };
}

// Axes are common to all groups, so that the groups can be compared.
function extents(groups) {
  const found = {};
  for (const chart of groups.flatMap((group) => group.charts)) {
    const known = chart.lines.flatMap((line) => line.values).filter((value) => value !== null);
    found[chart.key] = [...(found[chart.key] ?? []), ...(known.length ? [Math.min(...known), Math.max(...known)] : [])];
  }
  return found;
}

export function drawBreakdown(content, data) {
  const { first, last, step_seconds: seconds, count } = data.window;
  const view = {
    hidden: new Set(), week: null, marks: [], extent: extents(data.groups),
    window: { first: Date.parse(first), last: Date.parse(last), step: seconds * 1000, count },
  };
  const boxes = [];
  const rows = data.groups.map((group) => {
    const row = text("section", "grow", "");
    const name = text("h3", "", "");
    const label = document.createElement("bdi");
    label.textContent = group.name;
    name.append(label, text("span", "small dim", ` ${group.calls.toLocaleString("en")} calls`));
    const mine = group.charts.map(chartBox);
    boxes.push(...mine);
    row.append(name, ...mine.map(({ figure }) => figure));
    return row;
  });
  const notes = [data.rest, data.note, rows.length ? "" : "No call in this range."].filter(Boolean);
  content.replaceChildren(...rows, ...notes.map((note) => text("p", "small dim pad", note)));
  connect(boxes, view);
}

function connect(boxes, view) {
  const widths = boxes.map(({ box }) => box.clientWidth);
  const point = (i, at) => boxes.forEach((one) => cross(one, view, i, { tip: at?.one === one, top: at?.top }));
  boxes.forEach((one, i) => {
    one.found = drawTrend(one.box, one.chart, view, HEIGHT, widths[i]);
    one.box.addEventListener("pointermove", (event) => {
      const top = event.clientY - one.box.getBoundingClientRect().top;
      point(binAt(one, view, event.clientX), { one, top });
    });
    one.box.addEventListener("pointerleave", () => point(null));
  });
}
