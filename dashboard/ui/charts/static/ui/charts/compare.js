// Draws the Compare page when a chart comes into view: intervals, instances, distributions. Draws again when the theme
// or the width class changes.

import { density, densityHeight } from "./histograms.js";
import { intervals, intervalsHeight } from "./intervals.js";
import { plotly, whenNear } from "./library.js";
import { savePlot } from "./export-image.js";
import { strip, stripHeight } from "./strip-plot.js";
import { onThemeChange } from "./theme.js";

const data = JSON.parse(document.getElementById("compare-data").textContent);
const boxes = document.querySelectorAll(".draw");
const controls = document.querySelectorAll("[data-curves], [data-plot]");
const buttons = document.querySelectorAll("[data-curve], [data-plot]");

// Histogram or CDF: the URL of the page has the choice.
const summed = () => new URL(location.href).searchParams.get("curve") === "ecdf";

function press() {
  document.querySelectorAll("[data-curve]").forEach(
    (button) => button.setAttribute("aria-pressed", String((button.dataset.curve === "ecdf") === summed()))
  );
}

function choose(curve) {
  const to = new URL(location.href);
  if (curve === "ecdf") to.searchParams.set("curve", curve);
  else to.searchParams.delete("curve");
  history.replaceState(null, "", to);
  press();
  drawAll();
}

function offer() {
  buttons.forEach((button) => { button.disabled = false; });
  document.querySelectorAll("[data-curve]").forEach(
    (button) => button.addEventListener("click", () => choose(button.dataset.curve))
  );
  document.querySelectorAll("[data-plot]").forEach((button) => button.addEventListener("click", () => {
    document.querySelectorAll(button.dataset.plot).forEach(
      (plot, i) => savePlot(plot, `${button.dataset.name}${i ? `-${i + 1}` : ""}`)
    );
  }));
}

async function drawAll() {
  const work = [];
  const plot = document.getElementById("intervals");
  if (plot) work.push(intervals(plot, data.intervals));
  const box = document.getElementById("strip");
  if (box) work.push(strip(box, data.strip));
  document.querySelectorAll("[data-panel]").forEach(
    (panel) => work.push(density(panel, data.panels[Number(panel.dataset.panel)], summed()))
  );
  await Promise.all(work);
  document.body.dataset.drawn = work.length;
}

// Boxes and buttons get their size before drawing, so that the content below does not move.
function reserve() {
  controls.forEach((element) => { element.hidden = false; });
  buttons.forEach((button) => { button.disabled = true; });
  press();
  const heights = { intervals: (box) => intervalsHeight(box, data.intervals), strip: () => stripHeight(data.strip) };
  boxes.forEach((box) => {
    box.style.height = `${heights[box.id]?.(box) ?? densityHeight}px`;
    box.classList.add("waiting");
    box.textContent = "Loading chart…";
  });
}

function clear() {
  boxes.forEach((box) => {
    box.classList.remove("waiting");
    box.textContent = "";
  });
}

function begin() {
  clear();
  offer();
  drawAll();
  onThemeChange(drawAll);
  matchMedia("(min-width: 1401px)").addEventListener("change", drawAll);
}

function failed() {
  clear();
  controls.forEach((element) => { element.hidden = true; });
  boxes.forEach((box) => {
    box.classList.add("failed");
    box.style.height = "";
    box.textContent = "The chart library did not load. The tables have the same numbers.";
  });
  document.querySelectorAll("details.twin").forEach((twin) => { twin.open = true; });
}

reserve();
whenNear(boxes, () => plotly().then(begin, failed));
