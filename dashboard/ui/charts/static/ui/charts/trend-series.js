// The legend: each entry is a toggle, and the address has the hidden series and the overlay of last week.

const DEADLINE = 20000;

const read = (name) => new URL(location.href).searchParams.get(name) ?? "";

function write(name, value) {
  const to = new URL(location.href);
  if (value) to.searchParams.set(name, value);
  else to.searchParams.delete(name);
  history.replaceState(history.state, "", to);
}

export const hiddenSeries = () => new Set(read("hide").split(",").filter(Boolean));

// The values of the same time last week by chart, on the scale of the charts of this page.
async function fetchWeek(address, charts) {
  const signal = AbortSignal.timeout(DEADLINE);
  const answer = await fetch(address, { signal, headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) throw new Error(`${answer.status}`);
  const past = new Map((await answer.json()).charts.map((chart) => [chart.key, chart]));
  const values = charts.flatMap((chart) => {
    const line = past.get(chart.key)?.lines[0];
    if (!line || line.values.every((value) => value === null)) return [];
    const ratio = chart.factor / past.get(chart.key).factor;
    return [[chart.key, line.values.map((value) => (value === null ? null : value * ratio))]];
  });
  return Object.fromEntries(values);
}

// Connects the toggles of the legend to `view`; `redraw()` runs after each change.
export function connectLegend(legend, view, { address, charts, redraw }) {
  const note = legend.querySelector("[data-note]");
  const toggles = [...legend.querySelectorAll("[data-toggle]")];
  const press = (button, on) => button.setAttribute("aria-pressed", String(on));

  function leave(button, reason) {
    press(button, false);
    write("overlay", "");
    note.textContent = reason;
  }

  async function showWeek(button, on) {
    note.textContent = "";
    press(button, on);
    write("overlay", on ? "week" : "");
    view.week = null;
    if (on) {
      button.setAttribute("aria-busy", "true");
      try {
        const found = await fetchWeek(address(), charts());
        if (read("overlay") === "week") view.week = found;
        if (!Object.keys(found).length) leave(button, "No data for the same time last week.");
      } catch {
        leave(button, "Last week did not load. Try again.");
      }
      button.removeAttribute("aria-busy");
    }
    redraw();
  }

  function toggle(button) {
    const key = button.dataset.toggle;
    const on = button.getAttribute("aria-pressed") !== "true";
    if (key === "week") { showWeek(button, on); return; }
    if (on) view.hidden.delete(key);
    else view.hidden.add(key);
    press(button, on);
    write("hide", [...view.hidden].join(","));
    redraw();
  }

  view.hidden = hiddenSeries();
  for (const button of toggles) {
    if (button.dataset.toggle !== "week") press(button, !view.hidden.has(button.dataset.toggle));
    button.addEventListener("click", () => toggle(button));
  }
  const week = toggles.find((button) => button.dataset.toggle === "week");
  if (week && read("overlay") === "week") showWeek(week, true);
}
