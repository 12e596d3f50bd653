// Closing of menus, copy buttons, help popovers, toasts, and protection from double submits.
"use strict";
(() => {
  document.addEventListener("click", (event) => {
    document.querySelectorAll("details.menu[open]").forEach((menu) => {
      if (!menu.contains(event.target)) menu.open = false;
    });
    const button = event.target.closest("[data-copy], [data-copy-link]");
    if (button) copy(button);
  });
  document.querySelectorAll("[data-copy-link]").forEach((button) => { button.hidden = false; });

  // A message with an Undo button floats for ten seconds, unless the reader is at it.
  document.querySelectorAll("[data-toast]").forEach((toast) => {
    toast.classList.add("afloat");
    const drop = () => {
      if (toast.matches(":hover, :focus-within")) setTimeout(drop, 2000);
      else toast.remove();
    };
    setTimeout(drop, 10000);
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    const menu = document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  });

  // Help opens below its question mark, or above it if there is no room below.
  document.addEventListener("toggle", (event) => {
    const box = event.target;
    if (!box.matches?.(".what") || event.newState !== "open") return;
    const button = document.querySelector(`[popovertarget="${CSS.escape(box.id)}"]`).getBoundingClientRect();
    box.classList.add("placed");
    const { offsetWidth: width, offsetHeight: height } = box;
    const below = button.bottom + 6 + height < innerHeight;
    box.style.left = `${Math.max(8, Math.min(button.left - 12, innerWidth - width - 8))}px`;
    box.style.top = `${below ? button.bottom + 6 : Math.max(8, button.top - height - 6)}px`;
  }, true);

  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) { event.preventDefault(); return; }
    event.target.dataset.sent = "1";
    setTimeout(() => { delete event.target.dataset.sent; }, 4000);
  });

  // On a phone the navigation scrolls: keep the current section visible.
  const here = document.querySelector(".nav [aria-current]");
  if (here) here.parentElement.scrollLeft = here.offsetLeft + here.offsetWidth + 16 - here.parentElement.clientWidth;

  async function copy(button) {
    const source = document.getElementById(button.dataset.copy);
    const text = source ? source.textContent : new URL(button.dataset.copyLink, location.href).href;
    const label = button.querySelector("[data-label]");
    const usual = label.textContent;
    if (button.dataset.copying) return;
    button.dataset.copying = "1";
    try {
      await navigator.clipboard.writeText(text);
      label.textContent = "Copied";
    } catch {
      if (source) select(source);
      label.textContent = source ? "Press Ctrl+C" : "Not permitted";
    }
    setTimeout(() => {
      label.textContent = usual;
      delete button.dataset.copying;
    }, 2000);
  }

  function select(element) {
    const range = document.createRange();
    range.selectNodeContents(element);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
  }
})();
