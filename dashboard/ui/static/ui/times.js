// Turns every <time data-t> into the viewer's zone, keeps "3 min ago" true, and says in the footer which zone it is.
"use strict";
(() => {
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
  const date = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
  const dated = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium", hourCycle: "h23" });
  const units = [[90, 1, "s"], [5400, 60, "min"], [172800, 3600, "h"], [Infinity, 86400, "days"]];

  function span(seconds) {
    const [, factor, unit] = units.find(([limit]) => seconds < limit);
    return `${Math.max(0, Math.round(seconds / factor))}\u00a0${unit}`;
  }

  function write(element) {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) return;
    const now = new Date();
    let text;
    if (element.dataset.t === "ago") text = `${span((now - at) / 1000)} ago`;
    else if (element.dataset.t === "short" && at.toDateString() !== now.toDateString()) text = (at.getFullYear() === now.getFullYear() ? date : dated).format(at);
    else if (at.getFullYear() !== now.getFullYear()) text = `${dated.format(at)}, ${clock.format(at)}`;
    else text = element.dataset.t === "day" || at.toDateString() !== now.toDateString() ? day.format(at) : clock.format(at);
    if (element.textContent !== text) element.textContent = text;
    const title = exact.format(at);
    if (element.title !== title) element.title = title;
  }

  function writeAll(root) {
    root.querySelectorAll("time[data-t]").forEach(write);
    root.querySelectorAll("text[data-at]").forEach((label) => { label.textContent = clock.format(new Date(label.dataset.at)); });
  }

  function zone() {
    const offset = -new Date().getTimezoneOffset();
    const hours = String(Math.floor(Math.abs(offset) / 60)).padStart(2, "0");
    const minutes = String(Math.abs(offset) % 60).padStart(2, "0");
    const text = offset === 0 ? "Times in your zone, UTC" : `Times in your zone, UTC${offset < 0 ? "\u2212" : "+"}${hours}:${minutes}`;
    document.querySelectorAll("[data-zone]").forEach((element) => { element.textContent = text; });
  }

  // Times that are asked for are written in the viewer's zone and sent in UTC, which every address uses.
  const local = (text) => { const at = new Date(`${text}Z`); return new Date(at - at.getTimezoneOffset() * 60000).toISOString().slice(0, 16); };
  document.querySelectorAll("form[data-times]").forEach((form) => {
    const fields = [...form.querySelectorAll("input[type=datetime-local]")];
    fields.forEach((field) => { if (field.value) field.value = local(field.value); });
    form.querySelectorAll("[data-which]").forEach((line) => { line.textContent = "Both in your zone. Empty: until now."; });
    form.addEventListener("formdata", (event) => fields.forEach((field) => {
      if (field.value) event.formData.set(field.name, new Date(field.value).toISOString().slice(0, 16));
      else event.formData.delete(field.name);
    }));
  });

  writeAll(document);
  zone();
  document.addEventListener("htmx:afterSwap", (event) => writeAll(event.target.parentElement || document));
  setInterval(() => { if (!document.hidden) writeAll(document); }, 5000);
})();
