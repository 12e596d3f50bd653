// Panels that load when they open: the latency heat map and the breakdown by group.

import { drawBreakdown } from "./breakdown.js";
import { drawMaps } from "./latency-map.js";

const DEADLINE = 20000;

function say(content, text) {
  const line = document.createElement("p");
  line.className = "dim small pad";
  line.textContent = text;
  content.replaceChildren(line);
}

// Loads the data of a panel; the newest request wins.
async function load(panel, address, draw) {
  const content = panel.querySelector("[data-content]");
  panel.abort?.abort();
  const ended = new AbortController();
  panel.abort = ended;
  content.setAttribute("aria-busy", "true");
  if (!content.firstChild) say(content, "Loading…");
  try {
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(DEADLINE)]);
    const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
    if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
    draw(content, await answer.json());
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
  let data = null;
  let slot = "";
  const draw = (content) => drawMaps(content, panel.querySelector("[data-steps]"), data, slot);
  panel.querySelector("[data-slots]").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button || !data) return;
    slot = button.dataset.slot;
    press(event.currentTarget, button);
    draw(panel.querySelector("[data-content]"));
  });
  const redraw = () => { if (data && panel.open) draw(panel.querySelector("[data-content]")); };
  document.addEventListener("cw:zone", redraw);
  return () => load(panel, panel.dataset.panelJson, (content, found) => { data = found; draw(content); });
}

function connectGroups(panel) {
  const by = () => panel.querySelector('[data-by] [aria-pressed="true"]').dataset.key;
  const fetchGroups = () => load(panel, `${panel.dataset.panelJson}&by=${by()}`, drawBreakdown);
  panel.querySelector("[data-by]").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    press(event.currentTarget, button);
    const to = new URL(location.href);
    to.searchParams.set("by", by());
    history.replaceState(history.state, "", to);
    fetchGroups();
  });
  return fetchGroups;
}

const CONNECT = { map: connectMap, groups: connectGroups };
document.querySelectorAll("[data-panel]").forEach((panel) => {
  const open = CONNECT[panel.dataset.panel](panel);
  panel.addEventListener("toggle", () => {
    if (!panel.open || panel.dataset.loaded) return;
    panel.dataset.loaded = "1";
    open();
  });
});
