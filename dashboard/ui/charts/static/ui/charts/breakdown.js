// The breakdown by group, by Chart.js: per group one row of three line charts on common axes.

import { tickLabel, timeTicks } from "./axis.js";
import { make } from "./elements.js";
import { alone, fitAxis } from "./scale.js";
import { css } from "./theme.js";
import { readings } from "./trend-pointer.js";

const GUTTER = 44;

// The whole-range values follow the last colon of a conclusion.
const wholeRange = (chart) => chart.conclusion.split(", whole range: ").pop().replace(/\.$/, "");

function drawFrame(chart) {
  const figure = make("figure", "");
  const caption = make("figcaption", "small");
  const box = make("div", "lines");
  caption.append(
    make("b", "", chart.title), make("span", "dim", ` ${chart.unit}`), make("div", "mid", wholeRange(chart))
  );
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", chart.conclusion);
  box.append(make("canvas", ""));
  figure.append(caption, box);
  return { figure, canvas: box.firstChild, chart };
}

// Axes are common to all groups, so that the groups can be compared.
function fitAxes(groups) {
  const found = {};
  for (const { key, from_zero: fromZero } of groups[0]?.charts ?? []) {
    const charts = groups.flatMap((group) => group.charts.filter((chart) => chart.key === key));
    found[key] = fitAxis(charts.flatMap(({ lines }) => lines.flatMap(({ values }) => values)), { fromZero });
  }
  return found;
}

// The evaluated version is drawn last, on top of its baseline.
function dataset(line, { first, step }) {
  const ink = css(`--series-${line.slot}`);
  const single = new Set(alone(line.values));
  return {
    label: line.name, order: line.slot === 2 ? 0 : 1,
    borderColor: ink, backgroundColor: ink, borderWidth: 1.75, clip: 3,
    data: line.values.map((value, i) => ({ x: first + (i + 0.5) * step, y: value })),
    pointStyle: line.slot === 1 ? "rect" : "circle", pointHoverRadius: 3.5,
    pointRadius: ({ dataIndex }) => (single.has(dataIndex) ? 2.5 : 0),
  };
}

function scales(chart, axis, { first, last }) {
  const { ticks, label } = timeTicks(first, last, 4);
  const text = { color: css("--ink-3"), font: { size: 11, family: css("--font") } };
  const place = (values) => (scale) => { scale.ticks = values.map((value) => ({ value })); };
  return {
    x: {
      type: "linear", min: first, max: last, grid: { display: false }, border: { display: false },
      afterBuildTicks: place(ticks),
      ticks: { ...text, maxRotation: 0, autoSkipPadding: 12, callback: label },
    },
    y: {
      min: axis.low, max: axis.high, border: { display: false }, grid: { color: css("--grid"), drawTicks: false },
      afterBuildTicks: place(axis.ticks), afterFit: (scale) => { scale.width = GUTTER; },
      ticks: { ...text, padding: 6, autoSkip: false, callback: (value) => tickLabel(axis, value) + chart.suffix },
    },
  };
}

function tooltip(chart, view) {
  const read = (i) => readings(chart, chart.lines, view, i);
  return {
    animation: false, backgroundColor: css("--surface"), borderColor: css("--line-2"), borderWidth: 1,
    titleColor: css("--ink-2"), bodyColor: css("--ink"), bodyFont: { size: 12, family: css("--font") },
    usePointStyle: true, boxWidth: 9, boxHeight: 9, itemSort: (a, b) => a.datasetIndex - b.datasetIndex,
    titleFont: { size: 12, weight: "normal", family: css("--font") },
    callbacks: {
      title: ([item]) => (item ? read(item.dataIndex).head : ""),
      label: ({ dataIndex, datasetIndex }) => {
        const { name, text } = read(dataIndex).rows[datasetIndex];
        return `${name.length > 24 ? `${name.slice(0, 23)}…` : name} ${text}`;
      },
    },
  };
}

// Points of the same time are shown in all charts.
function connect(charts) {
  const point = (from, found) => charts.filter((one) => one !== from).forEach((one) => {
    one.setActiveElements(found);
    one.draw();
  });
  for (const chart of charts) {
    chart.options.onHover = (_, found) => point(
      chart, found.map(({ datasetIndex, index }) => ({ datasetIndex, index }))
    );
    chart.canvas.addEventListener("pointerleave", () => point(chart, []));
  }
}

// Returns the charts; the caller destroys them before it draws again.
export function drawBreakdown(Chart, content, data) {
  const { first, last, step_seconds: seconds } = data.window;
  const window = { first: Date.parse(first), last: Date.parse(last), step: seconds * 1000 };
  const axes = fitAxes(data.groups);
  const frames = [];
  const rows = data.groups.map((group) => {
    const row = make("section", "grow");
    const name = make("h3", "");
    const mine = group.charts.map(drawFrame);
    name.append(make("bdi", "", group.name), make("span", "small dim", ` ${group.calls.toLocaleString("en")} calls`));
    row.append(name, ...mine.map(({ figure }) => figure));
    frames.push(...mine);
    return row;
  });
  const notes = [data.rest, data.note, rows.length ? "" : "No call in this range."].filter(Boolean);
  content.replaceChildren(...rows, ...notes.map((note) => make("p", "small dim pad", note)));
  const charts = frames.map(({ canvas, chart }) => new Chart(canvas, {
    type: "line",
    data: { datasets: chart.lines.map((line) => dataset(line, window)) },
    options: {
      animation: false, maintainAspectRatio: false, parsing: false, normalized: true,
      interaction: { mode: "index", intersect: false }, layout: { padding: { top: 8, right: 6 } },
      scales: scales(chart, axes[chart.key], window),
      plugins: { legend: { display: false }, tooltip: tooltip(chart, { window }) },
    },
  }));
  connect(charts);
  return charts;
}
