// Draws the Compare page: intervals, every instance, distributions; again when the theme or the width class changes.

import { density } from "./densities.js";
import { intervals } from "./intervals.js";
import { strip } from "./strip.js";
import { onThemeChange } from "./theme.js";

const data = JSON.parse(document.getElementById("compare-data").textContent);
const boxes = document.querySelectorAll(".draw");

async function drawAll() {
  const work = [];
  const plot = document.getElementById("intervals");
  if (plot) work.push(intervals(plot, data.intervals));
  const box = document.getElementById("strip");
  if (box) work.push(strip(box, data.strip));
  document.querySelectorAll("[data-panel]").forEach((panel) => work.push(density(panel, data.panels[Number(panel.dataset.panel)])));
  await Promise.all(work);
  document.body.dataset.drawn = work.length;
}

if (window.Plotly) {
  drawAll();
  onThemeChange(drawAll);
  matchMedia("(min-width: 1321px)").addEventListener("change", drawAll);
} else {
  boxes.forEach((box) => { box.classList.add("failed"); box.textContent = "The chart library did not load; the tables hold the same numbers."; });
  document.querySelectorAll("details.twin").forEach((twin) => { twin.open = true; });
}
