// Menus that close, buttons that copy, forms that are sent once.
"use strict";
(() => {
  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.menu[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
    const button = event.target.closest("[data-copy]");
    if (button) copy(button);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "1";
    setTimeout(() => { delete event.target.dataset.sent; }, 4000);
  });

  async function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    const label = button.querySelector("[data-label]");
    try {
      await navigator.clipboard.writeText(text);
      label.textContent = "Copied";
    } catch {
      const range = document.createRange();
      range.selectNodeContents(document.getElementById(button.dataset.copy));
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      label.textContent = "Press Ctrl+C";
    }
    setTimeout(() => { label.textContent = "Copy"; }, 2000);
  }
})();
