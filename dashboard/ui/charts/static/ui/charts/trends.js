// Draws the small multiples of the Model page with Chart.js: gaps stay gaps, one crosshair runs through all charts.

import { figure, moment, timeTicks } from "./axis.js";
import { saveChart } from "./export-image.js";
import { shade } from "./confidence-band.js";
import { colour, css, dash, onThemeChange, trace } from "./theme.js";
import { selection, zoomTo, zoomable, zoomOut } from "./zoom.js";

const holder = document.getElementById("trend-charts");
let data = timed(JSON.parse(document.getElementById("trend-data").textContent));
let { first, step, count } = data.window;
let charts = [];
let place = null;
let marked = null;
let anchor = null;

// The data has ISO 8601 times; charts need milliseconds.
function timed(found) {
  const { window, marks, charts: drawn } = found;
  window.first = Date.parse(window.first);
  window.last = Date.parse(window.last);
  window.step = window.step_seconds * 1000;
  marks.forEach((mark) => {
    mark.at = Date.parse(mark.at);
    if (mark.until) mark.until = Date.parse(mark.until);
  });
  drawn.forEach((chart) => chart.lines.forEach((line) => line.dots.forEach((dot) => { dot.at = Date.parse(dot.at); })));
  return found;
}

const middle = (i) => first + (i + 0.5) * step;

function dataset(line) {
  const ink = colour(line.slot);
  const common = {
    slot: line.slot, borderColor: ink, backgroundColor: ink, borderDash: dash(line.slot), spanGaps: false
  };
  if (line.dots.length || line.values.every((value) => value === null)) {
    return {
      ...common,
      showLine: false,
      dots: true,
      data: line.dots.map((dot) => ({ x: dot.at, y: dot.value })),
      pointRadius: 0
    };
  }
  return {
    ...common,
    low: line.low,
    high: line.high,
    data: line.values.map((value, i) => ({ x: middle(i), y: value })),
    pointRadius: 0
  };
}

// One or two values between gaps form an invisibly short line, so they also get the shape of their version.
function alone(points, i) {
  const known = (j) => points[j] !== undefined && points[j].y !== null;
  let run = 0;
  for (let j = i; known(j); j -= 1) run += 1;
  for (let j = i + 1; known(j) && run <= 2; j += 1) run += 1;
  return known(i) && run <= 2;
}

const shapes = {
  id: "shapes",
  afterDatasetsDraw(chart) {
    chart.data.datasets.forEach((set, number) => {
      chart.ctx.fillStyle = set.backgroundColor;
      chart.getDatasetMeta(number).data.forEach((point, i) => {
        if (!set.dots && !alone(set.data, i)) return;
        trace(chart.ctx, set.slot, point.x, point.y, 3);
        chart.ctx.fill();
      });
    });
  },
};

function upright(context, x, area, style, dashes) {
  context.save();
  context.strokeStyle = style;
  context.lineWidth = 1;
  context.setLineDash(dashes);
  context.beginPath();
  context.moveTo(Math.round(x) + 0.5, area.top);
  context.lineTo(Math.round(x) + 0.5, area.bottom);
  context.stroke();
  context.restore();
}

// The interval of an onset: a band of at least three pixels, with its name next to it.
function span(context, axis, area, mark) {
  const ink = mark.kind === "watch_onset" ? "--watch" : "--rollback";
  const left = Math.max(area.left, axis.getPixelForValue(mark.at));
  const right = Math.min(area.right, axis.getPixelForValue(mark.until));
  const width = Math.max(3, right - left);
  context.save();
  context.fillStyle = css(ink);
  context.globalAlpha = 0.22;
  context.fillRect(left, area.top, width, area.bottom - area.top);
  context.globalAlpha = 1;
  context.fillStyle = css(`${ink}-ink`);
  context.font = `600 11px ${css("--font")}`;
  const before = left + width + 40 > area.right;
  context.textAlign = before ? "right" : "left";
  context.fillText("onset", before ? left - 3 : left + width + 3, area.bottom - 4);
  context.restore();
}

const marks = {
  id: "marks",
  beforeDatasetsDraw(chart) {
    const { ctx, chartArea, scales } = chart;
    for (const mark of data.marks) {
      if (mark.until) { span(ctx, scales.x, chartArea, mark); continue; }
      const x = scales.x.getPixelForValue(mark.at);
      const deployed = mark.kind === "deployment" || mark.kind === "posted";
      const ink = css(deployed ? "--mark" : mark.kind === "rollback" ? "--rollback" : "--watch");
      upright(ctx, x, chartArea, ink, deployed ? [2, 3] : []);
      ctx.fillStyle = ink;
      trace(ctx, deployed ? 4 : 3, x + 0.5, chartArea.top - 4, 3);
      ctx.fill();
    }
  },
};

const budget = {
  id: "budget",
  afterDatasetsDraw(chart) {
    const level = chart.options.budget;
    if (!level) return;
    const { ctx, chartArea, scales } = chart;
    const y = scales.y.getPixelForValue(level);
    ctx.save();
    ctx.strokeStyle = css("--watch");
    ctx.lineWidth = 1.5;
    ctx.setLineDash([5, 3]);
    ctx.beginPath();
    ctx.moveTo(chartArea.left, y);
    ctx.lineTo(chartArea.right, y);
    ctx.stroke();
    ctx.fillStyle = css("--watch-ink");
    ctx.font = `600 11px ${css("--font")}`;
    ctx.fillText(`budget ${figure(level)} s`, chartArea.left + 2, y - 4);
    ctx.restore();
  },
};

const crosshair = {
  id: "crosshair",
  afterDraw(chart) {
    if (place === null) return;
    const { ctx, chartArea, scales } = chart;
    ctx.save();
    ctx.globalAlpha = 0.55;
    upright(ctx, scales.x.getPixelForValue(middle(place)), chartArea, css("--crosshair"), []);
    ctx.restore();
    for (const set of chart.data.datasets) {
      const point = set.dots ? undefined : set.data[place];
      if (!point || point.y === null) continue;
      ctx.fillStyle = set.backgroundColor;
      ctx.strokeStyle = css("--surface");
      trace(ctx, set.slot, scales.x.getPixelForValue(point.x), scales.y.getPixelForValue(point.y), 3.5);
      ctx.fill();
      ctx.stroke();
    }
  },
};

function scales(chart) {
  const { ticks, label } = timeTicks(first, data.window.last, 4);
  const font = { size: 11, family: css("--font") };
  const top = Math.max(0, ...chart.lines.flatMap((line) => [...line.values, ...line.dots.map((dot) => dot.value)]));
  // The scale leaves room for a band above the highest value, but one very uncertain bin does not flatten the others.
  const shaded = Math.min(2 * top, Math.max(0, ...chart.lines.flatMap((line) => line.high || [])));
  return {
    x: {
      type: "linear", min: first, max: data.window.last, grid: { display: false }, border: { display: false },
      afterBuildTicks: (axis) => { axis.ticks = ticks.map((value) => ({ value })); },
      ticks: { color: css("--ink-3"), font, maxRotation: 0, autoSkip: true, autoSkipPadding: 12, callback: label },
    },
    y: {
      beginAtZero: true, suggestedMax: Math.max(shaded, 1.1 * (chart.budget || 0)) || (top ? undefined : 1),
      border: { display: false }, grid: { color: css("--grid"), drawTicks: false },
      ticks: {
        color: css("--ink-3"), font, maxTicksLimit: 5, padding: 6, callback: (value) => figure(value) + chart.suffix
      },
    },
  };
}

function draw(chart) {
  const box = holder.querySelector(`[data-chart="${chart.key}"]`);
  const canvas = box.querySelector("canvas");
  if (!canvas) return null;
  // The evaluated version is drawn last, on top of its baseline.
  const order = [...chart.lines].sort((a, b) => (a.slot === 2) - (b.slot === 2) || (a.slot === 1) - (b.slot === 1));
  const drawn = new window.Chart(canvas, {
    type: "line",
    data: { datasets: order.map(dataset) },
    plugins: [shade, marks, shapes, budget, crosshair, selection(() => marked)],
    options: {
      animation: false, responsive: true, maintainAspectRatio: false, normalized: true, parsing: false, spanGaps: false,
      events: ["mousemove", "mouseout", "touchstart", "touchmove"], interaction: { mode: "nearest", intersect: false },
      budget: chart.budget,
      layout: { padding: { top: 10, right: 4, bottom: 0, left: 0 } },
      elements: {
        line: { borderWidth: 1.75, tension: 0, borderJoinStyle: "round" }, point: { radius: 0, hoverRadius: 0 }
      },
      scales: scales(chart),
      plugins: { legend: { display: false }, tooltip: { enabled: false } },
      onHover: (event, _, self) => hover(event, self),
    },
  });
  canvas.addEventListener("mouseleave", () => point(null));
  zoomable(
    drawn,
    canvas,
    { snap: (at) => first + Math.max(0, Math.min(count - 1, Math.floor((at - first) / step))) * step, step, show: mark }
  );
  return { chart, box, drawn };
}

function hover(event, self) {
  const { left, right } = self.chartArea;
  if (event.x === null || event.x < left || event.x > right) { point(null); return; }
  const i = Math.floor((self.scales.x.getValueForPixel(event.x) - first) / step);
  point(Math.min(count - 1, Math.max(0, i)));
}

function point(i) {
  if (i === place) return;
  place = i;
  const line = document.querySelector("[data-crosshair]");
  line.hidden = i === null;
  if (i !== null) document.querySelector("[data-crosshair-time]").textContent = moment(first + i * step);
  for (const { chart, box, drawn } of charts) {
    chart.lines.forEach((one) => {
      if (one.dots.length) return;
      const value = box.querySelector(`[data-slot="${one.slot}"] [data-value]`);
      if (value.dataset.newest === undefined) value.dataset.newest = value.textContent;
      value.textContent = i === null ? value.dataset.newest : said(chart, one, i);
    });
    drawn.draw();
  }
}

// A bin without a value can have a bound (the end of the engine's first bucket) and a mean.
function said(chart, line, i) {
  const value = line.values[i], below = line.below[i];
  if (value === null && below !== undefined && below !== null)
    return `<\u00a0${figure(below)}, mean ${figure(line.mean[i])}`;
  return figure(value) + (value === null ? "" : chart.suffix);
}

function mark(span) {
  marked = span;
  charts.forEach(({ drawn }) => drawn.draw());
}

function save(key) {
  const one = charts.find(({ chart }) => chart.key === key);
  if (!one) return;
  const { chart, box } = one;
  const about = `${document.querySelector("h1").innerText.trim()}, ${moment(first)} to ${moment(data.window.last)}`;
  saveChart(
    box.querySelector("canvas"),
    {
      title: chart.title,
      unit: chart.unit,
      about,
      lines: chart.lines,
      name: `${chart.key}-${new Date(first).toISOString().slice(0, 10)}`
    }
  );
}

// Polls the numbers: draws only after a change, and shows a note if more than the numbers changed.
async function refresh() {
  const address = holder.dataset.liveJson;
  if (!address || document.hidden || marked || place !== null || document.body.dataset.ended) return;
  try {
    const answer = await fetch(
      address, { headers: holder.dataset.etag ? { "If-None-Match": holder.dataset.etag } : {}, cache: "no-store" }
    );
    if (new URL(answer.url).pathname === document.body.dataset.wayIn) {
      document.dispatchEvent(new CustomEvent("cw:ended"));
      return;
    }
    if (answer.status !== 200 && answer.status !== 304) return;
    document.dispatchEvent(new CustomEvent("cw:checked"));
    if (answer.status === 304) return;
    holder.dataset.etag = answer.headers.get("ETag") || "";
    const newer = timed(await answer.json());
    if (JSON.stringify(newer.said) !== JSON.stringify(data.said)) {
      document.getElementById("said").hidden = false;
      return;
    }
    if (JSON.stringify([newer.charts, newer.marks]) === JSON.stringify([data.charts, data.marks])) return;
    data = newer;
    ({ first, step, count } = data.window);
    drawAll();
    newest();
  } catch {
    // No response: live.js shows the age of the page.
  }
}

function newest() {
  for (const { chart, box } of charts) {
    for (const one of chart.lines) {
      const newest = [count - 1, count - 2].find((i) => (one.values[i] ?? one.below[i] ?? null) !== null) ?? count - 1;
      const value = box.querySelector(`[data-slot="${one.slot}"] [data-value]`);
      if (!value) continue;
      value.textContent = one.dots.length ? figure(one.dots[one.dots.length - 1].value) : said(chart, one, newest);
      delete value.dataset.newest;
    }
  }
}

function drawAll() {
  charts.forEach(({ drawn }) => drawn.destroy());
  charts = data.charts.map(draw).filter(Boolean);
  holder.dataset.drawn = charts.length;
}

function keys(event) {
  if (event.key === "Escape") { anchor = null; mark(null); point(null); }
  if (event.key === "Enter" && marked && anchor !== null) { event.preventDefault(); zoomTo(...marked); return; }
  if (event.key === "Backspace") { event.preventDefault(); zoomOut(); return; }
  const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (!move) return;
  event.preventDefault();
  if (event.shiftKey && anchor === null) anchor = place === null ? count - 1 : place;
  point(place === null ? count - 1 : Math.min(count - 1, Math.max(0, place + move)));
  if (event.shiftKey) mark([first + Math.min(anchor, place) * step, first + (Math.max(anchor, place) + 1) * step]);
  else if (anchor !== null) { anchor = null; mark(null); }
}

if (window.Chart) {
  holder.tabIndex = 0;
  holder.setAttribute("role", "group");
  holder.setAttribute(
    "aria-label", "Trend charts; the arrow keys move the crosshair, with Shift they select a span, Enter shows it"
  );
  holder.addEventListener("keydown", (event) => { if (event.target === holder) keys(event); });
  holder.addEventListener("blur", () => { anchor = null; mark(null); point(null); });
  document.querySelectorAll("[data-png]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", () => { save(button.dataset.png); button.closest("details").open = false; });
  });
  document.querySelectorAll("[data-zoomable]").forEach((element) => { element.hidden = false; });
  drawAll();
  onThemeChange(drawAll);
  if (holder.dataset.liveJson) setInterval(refresh, 20000);
} else {
  // Without the chart library, open the data table.
  document.getElementById("trend-tables").open = true;
  holder.classList.add("failed");
}
document.querySelectorAll('a[href="#trend-tables"]').forEach((link) => link.addEventListener("click", () => {
  document.getElementById("trend-tables").open = true;
  link.closest("details").open = false;
}));
