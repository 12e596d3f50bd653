// Converts every <time data-t> to the viewer's time zone, updates "3 min ago", and shows the zone in the footer.
import { clock, dated, exact, moment, zone } from "./moments.js";

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
  root.querySelectorAll("text[data-at]").forEach((label) => { label.textContent = clock(new Date(label.dataset.at)); });
}

// Time fields use the viewer's time zone; forms send UTC, which all URLs use.
const local = (text) => {
  const at = new Date(`${text}Z`);
  return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16);
};
document.querySelectorAll("form[data-times]").forEach((form) => {
  const fields = [...form.querySelectorAll("input[type=datetime-local]")];
  fields.forEach((field) => { if (field.value) field.value = local(field.value); });
  form.querySelectorAll("[data-which]").forEach((line) => {
    line.textContent = "Your time zone. Leave the end empty for now.";
  });
  form.addEventListener("formdata", (event) => fields.forEach((field) => {
    if (field.value) event.formData.set(field.name, new Date(field.value).toISOString().slice(0, 16));
    else event.formData.delete(field.name);
  }));
});

writeAll(document);
document.querySelectorAll("[data-zone]").forEach((element) => { element.textContent = `Times: ${zone()}`; });
document.addEventListener("htmx:afterSwap", (event) => writeAll(event.target.parentElement || document));
setInterval(() => { if (!document.hidden) writeAll(document); }, 5000);
