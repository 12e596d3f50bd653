// Draws the Compare page: intervals, every instance, distributions; again when the theme or the width class changes.

import { density } from "./densities.js";
import { intervals } from "./intervals.js";
import { savePlot } from "./save.js";
import { strip } from "./strip.js";
import { onThemeChange } from "./theme.js";

const data = JSON.parse(document.getElementById("compare-data").textContent);
const boxes = document.querySelectorAll(".draw");

// Shares of calls or shares up to a time: which one is drawn stands in the page's address.
const summed = () => new URL(location.href).searchParams.get("curve") === "ecdf";

function press() {
  document.querySelectorAll("[data-curve]").forEach((button) => button.setAttribute("aria-pressed", String((button.dataset.curve === "ecdf") === summed())));
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
  press();
  document.querySelectorAll("[data-curves], [data-plot]").forEach((element) => { element.hidden = false; });
  document.querySelectorAll("[data-curve]").forEach((button) => button.addEventListener("click", () => choose(button.dataset.curve)));
  document.querySelectorAll("[data-plot]").forEach((button) => button.addEventListener("click", () => {
    document.querySelectorAll(button.dataset.plot).forEach((plot, i) => savePlot(plot, `${button.dataset.name}${i ? `-${i + 1}` : ""}`));
  }));
}

async function drawAll() {
  const work = [];
  const plot = document.getElementById("intervals");
  if (plot) work.push(intervals(plot, data.intervals));
  const box = document.getElementById("strip");
  if (box) work.push(strip(box, data.strip));
  document.querySelectorAll("[data-panel]").forEach((panel) => work.push(density(panel, data.panels[Number(panel.dataset.panel)], summed())));
  await Promise.all(work);
  document.body.dataset.drawn = work.length;
}

if (window.Plotly) {
  offer();
  drawAll();
  onThemeChange(drawAll);
  matchMedia("(min-width: 1321px)").addEventListener("change", drawAll);
} else {
  boxes.forEach((box) => { box.classList.add("failed"); box.textContent = "The chart library did not load; the tables hold the same numbers."; });
  document.querySelectorAll("details.twin").forEach((twin) => { twin.open = true; });
}
