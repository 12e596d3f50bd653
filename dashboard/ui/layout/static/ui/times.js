// Converts every <time data-t> to the chosen time zone, updates "3 min ago", and lets the reader choose between UTC
// and local time in the footer.
import { chooseZone, chosenZone, clock, dated, exact, moment, wall, zone } from "./moments.js";

const units = [[90, 1, "s"], [5400, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "days"]];

function span(seconds) {
  const [, factor, unit] = units.find(([limit]) => seconds < limit);
  return `${Math.max(0, Math.round(seconds / factor))}\u00a0${unit}`;
}

function write(element) {
  const at = new Date(element.dateTime);
  if (Number.isNaN(at.getTime())) return;
  const { t } = element.dataset;
  const text = t === "ago" ? `${span((new Date() - at) / 1000)} ago` : t === "day" ? dated(at) : moment(at);
  if (element.textContent !== text) element.textContent = text;
  const title = exact(at);
  if (element.title !== title) element.title = title;
}

function writeAll(root) {
  root.querySelectorAll("time[data-t]").forEach(write);
  root.querySelectorAll("svg [data-at]").forEach((label) => {
    const at = new Date(label.dataset.at);
    label.textContent = label.hasAttribute("data-dated") ? dated(at) : clock(at);
  });
}

// Time fields use the chosen zone; forms send UTC, which all URLs use.
const toField = (text) => wall(new Date(`${text}Z`)).toISOString().slice(0, 16);
const toUtc = (text) => (chosenZone() === "utc" ? new Date(`${text}Z`) : new Date(text)).toISOString().slice(0, 16);
document.querySelectorAll("form[data-times]").forEach((form) => {
  const fields = [...form.querySelectorAll("input[type=datetime-local]")];
  const given = new Map(fields.map((field) => [field, field.value]));
  const write = () => {
    fields.forEach((field) => { if (given.get(field)) field.value = toField(given.get(field)); });
    form.querySelectorAll("[data-which]").forEach((line) => {
      line.textContent = `${chosenZone() === "utc" ? "UTC" : "Your time zone"}. Leave the end empty for now.`;
    });
  };
  write();
  fields.forEach((field) => field.addEventListener("change", () => {
    given.set(field, field.value ? toUtc(field.value) : "");
  }));
  document.addEventListener("cw:zone", write);
  form.addEventListener("formdata", (event) => fields.forEach((field) => {
    if (field.value) event.formData.set(field.name, toUtc(field.value));
    else event.formData.delete(field.name);
  }));
});

function showZone() {
  document.querySelectorAll("[data-zone]").forEach((element) => { element.textContent = `Times: ${zone()}`; });
  document.querySelectorAll("[data-zones] button").forEach((button) => {
    button.setAttribute("aria-pressed", String(button.value === chosenZone()));
  });
}

document.querySelectorAll("[data-zones]").forEach((group) => {
  group.hidden = false;
  group.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    chooseZone(button.value);
    showZone();
    writeAll(document);
    document.dispatchEvent(new CustomEvent("cw:zone")); // charts draw their axes again
  });
});

writeAll(document);
showZone();
document.addEventListener("htmx:afterSwap", (event) => writeAll(event.target.parentElement || document));
setInterval(() => { if (!document.hidden) writeAll(document); }, 5000);
