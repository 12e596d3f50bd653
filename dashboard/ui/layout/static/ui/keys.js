// Keyboard shortcuts and their sheet; an element with data-key is clicked by its key. Shortcuts are off in text
// fields, and with Ctrl, Alt or Meta.
"use strict";
(() => {
  const sheet = document.getElementById("keys");
  let leading = 0;

  const writing = (element) => element.closest("input, textarea, select, [contenteditable], dialog[open]") !== null;

  function show() {
    if (sheet && !sheet.open) sheet.showModal();
  }

  function range(step) {
    const all = [...document.querySelectorAll("[data-ranges] a")];
    const at = all.findIndex((link) => link.hasAttribute("aria-current"));
    const next = all[at + step];
    if (at >= 0 && next) location.assign(next.href);
  }

  function row(step) {
    const table = document.querySelector("main table");
    if (!table) return;
    const rows = [...table.querySelectorAll("tbody tr")].filter((one) => one.querySelector("th a[href], td a[href]"));
    const at = rows.findIndex((one) => one.classList.contains("on"));
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
    if (!next) return;
    rows.forEach((one) => one.classList.toggle("on", one === next));
    next.querySelector("th a[href], td a[href]").focus();
  }

  document.querySelectorAll("[data-keys]").forEach((button) => {
    button.hidden = false;
    button.addEventListener("click", show);
  });
  document.addEventListener("focusin", (event) => {
    const kept = event.target.closest?.("tr.on");
    document.querySelectorAll("tr.on").forEach((one) => { if (one !== kept) one.classList.remove("on"); });
  });

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || writing(event.target)) return;
    if (leading && Date.now() - leading < 1500) {
      leading = 0;
      const link = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); location.assign(link.href); }
      return;
    }
    const search = document.querySelector("[data-search]");
    if (event.key === "/" && search) { event.preventDefault(); search.focus(); search.select(); }
    else if (event.key === "?") { event.preventDefault(); show(); }
    else if (event.key === "g") leading = Date.now();
    else if (event.key === "[") range(-1);
    else if (event.key === "]") range(1);
    else if (event.key === "j") row(1);
    else if (event.key === "k") row(-1);
    else {
      const action = document.querySelector(`main [data-key="${CSS.escape(event.key)}"]`);
      if (action) { event.preventDefault(); action.click(); }
    }
  });
})();
