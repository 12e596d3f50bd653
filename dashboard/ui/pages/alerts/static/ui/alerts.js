// The Alerts list: filters apply at once, selection survives an update, and the bar counts the selected alerts.

const form = document.getElementById("bulk");
const live = document.getElementById("live");
const boxes = () => [...live.querySelectorAll("input[name=number]")];

document.querySelectorAll("form[data-apply]").forEach((filters) => {
  filters.querySelector("[data-fallback]").hidden = true;
  filters.addEventListener("change", (event) => {
    if (event.target.matches("select")) filters.requestSubmit();
  });
  // An empty field would only lengthen the address.
  filters.addEventListener("formdata", (event) => {
    [...event.formData].forEach(([name, value]) => { if (!value) event.formData.delete(name); });
  });
});

function members(group) {
  return [...group.closest("tbody").querySelectorAll("input[name=number]")];
}

function show() {
  if (!form) return;
  const count = boxes().filter((box) => box.checked).length;
  form.classList.toggle("none", count === 0);
  form.querySelector("[data-selected]").textContent = count ? `${count} selected` : "Select alerts to act on them:";
  form.querySelector("[data-clear]").hidden = count === 0;
  form.querySelectorAll("button[name=action]").forEach((button) => { button.disabled = count === 0; });
  live.querySelectorAll("tr").forEach((row) => {
    row.classList.toggle("sel", row.querySelector("input[name=number]")?.checked === true);
  });
  live.querySelectorAll("[data-group]").forEach((group) => {
    const mine = members(group);
    group.hidden = mine.length === 0;
    const checked = mine.filter((box) => box.checked).length;
    group.checked = checked > 0 && checked === mine.length;
    group.indeterminate = checked > 0 && checked < mine.length;
  });
}

let kept = new Set();
live.addEventListener("change", (event) => {
  if (event.target.matches("[data-group]"))
    members(event.target).forEach((box) => { box.checked = event.target.checked; });
  show();
});
form?.addEventListener("reset", () => setTimeout(show));
live.addEventListener("htmx:beforeSwap", () => {
  kept = new Set(boxes().filter((box) => box.checked).map((box) => box.value));
});
live.addEventListener("htmx:afterSwap", () => {
  boxes().forEach((box) => { box.checked = kept.has(box.value); });
  show();
});
window.addEventListener("pageshow", show);
show();
