// Panels that load when they open: the latency heat map and the breakdown by group, each with its library.

import { drawBreakdown } from "./breakdown.js";
import { make } from "./elements.js";
import { connectMaps } from "./latency-map.js";
import { loadChartJs, loadPlotly } from "./library.js";
import { onThemeChange } from "./theme.js";

const DEADLINE = 20000;

const say = (content, text) => content.replaceChildren(make("p", "dim small pad", text));

async function fetchData(address, ended) {
  const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(DEADLINE)]);
  const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
  return answer.json();
}

// Loads the data and the library of a panel; the newest request wins.
async function load(panel, address, loadLibrary, draw) {
  const content = panel.querySelector("[data-content]");
  panel.abort?.abort();
  const ended = new AbortController();
  panel.abort = ended;
  content.setAttribute("aria-busy", "true");
  if (!content.firstChild) say(content, "Loading…");
  try {
    const [data, library] = await Promise.all([fetchData(address, ended), loadLibrary()]);
    if (ended.signal.aborted) return;
    draw(library, data);
  } catch {
    if (ended.signal.aborted) return;
    say(content, "The panel did not load. Close and open it to try again.");
    delete panel.dataset.loaded;
  }
  content.removeAttribute("aria-busy");
}

const press = (group, chosen) => group.querySelectorAll("button").forEach(
  (button) => button.setAttribute("aria-pressed", String(button === chosen))
);

function connectMap(panel) {
  const draw = connectMaps(
    ...["[data-content]", "[data-scale]", "[data-reset]"].map((one) => panel.querySelector(one))
  );
  let [found, slot] = [null, ""];
  const redraw = () => { if (found) draw(...found, slot); };
  panel.querySelector("[data-slots]").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button || !found) return;
    slot = button.dataset.slot;
    press(event.currentTarget, button);
    redraw();
  });
  const open = () => load(panel, panel.dataset.panelJson, loadPlotly, (...both) => { found = both; redraw(); });
  return { open, redraw };
}

function connectGroups(panel) {
  const content = panel.querySelector("[data-content]");
  let [found, charts] = [null, []];
  const redraw = () => {
    if (!found) return;
    const [Chart, data] = found;
    charts.forEach((chart) => chart.destroy());
    charts = drawBreakdown(Chart, content, data);
  };
  const by = () => panel.querySelector('[data-by] [aria-pressed="true"]').dataset.key;
  const open = () => load(
    panel, `${panel.dataset.panelJson}&by=${by()}`, loadChartJs, (...both) => { found = both; redraw(); }
  );
  panel.querySelector("[data-by]").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    press(event.currentTarget, button);
    const to = new URL(location.href);
    to.searchParams.set("by", by());
    history.replaceState(history.state, "", to);
    open();
  });
  return { open, redraw };
}

const CONNECT = { map: connectMap, groups: connectGroups };
document.querySelectorAll("[data-panel]").forEach((panel) => {
  const { open, redraw } = CONNECT[panel.dataset.panel](panel);
  const redrawOpen = () => { if (panel.open && panel.dataset.loaded) redraw(); };
  panel.addEventListener("toggle", () => {
    if (!panel.open) return;
    if (panel.dataset.loaded) redraw(); // the theme, the zone or the width can differ
    else open();
    panel.dataset.loaded = "1";
  });
  document.addEventListener("cw:zone", redrawOpen);
  onThemeChange(redrawOpen);
});
