// Search below the field: queries while the user types, arrow keys select, Enter opens. Without this script, the field
// leads to a results page.
"use strict";
(() => {
  const input = document.querySelector("[data-search]");
  const box = document.getElementById("found");
  if (!input || !box) return;
  const WAIT = 160;
  let asked = "";
  let timer = 0;
  let under = null;

  input.setAttribute("role", "combobox");
  input.setAttribute("aria-controls", "found");
  input.setAttribute("aria-expanded", "false");

  const links = () => [...box.querySelectorAll("a")];

  function close() {
    box.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function choose(link) {
    links().forEach((one) => one.removeAttribute("aria-selected"));
    if (!link) { input.removeAttribute("aria-activedescendant"); return; }
    link.setAttribute("aria-selected", "true");
    input.setAttribute("aria-activedescendant", link.id);
    link.scrollIntoView({ block: "nearest" });
  }

  function dress() {
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", "Results");
    box.querySelectorAll("section").forEach((group) => group.setAttribute("role", "group"));
    box.querySelectorAll("ul, li").forEach((element) => element.setAttribute("role", "none"));
    links().forEach((link, number) => { link.id = `hit-${number}`; link.setAttribute("role", "option"); });
  }

  async function ask(text) {
    under?.abort();
    under = new AbortController();
    try {
      const answer = await fetch(
        `${input.dataset.search}?q=${encodeURIComponent(text)}`,
        { headers: { "HX-Request": "true" }, signal: under.signal }
      );
      if (text !== asked) return;
      const inside = answer.ok && new URL(answer.url).pathname !== document.body.dataset.wayIn;
      // The response is escaped by the server; the content security policy blocks scripts in it.
      box.innerHTML = inside ? await answer.text() : "";
      if (!inside) box.textContent = "The search did not respond. Press Enter for the results page.";
      dress();
      box.hidden = box.childNodes.length === 0;
      input.setAttribute("aria-expanded", String(!box.hidden));
    } catch (error) {
      if (error.name === "AbortError") return;
      box.textContent = "The search did not respond. Press Enter for the results page.";
      box.hidden = false;
    }
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    asked = input.value.trim();
    if (!asked) { box.replaceChildren(); close(); return; }
    timer = setTimeout(() => ask(asked), WAIT);
  });

  input.addEventListener("keydown", (event) => {
    const all = links();
    const at = all.findIndex((link) => link.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") {
      if (box.hidden) { input.value = ""; input.blur(); }
      close();
      event.stopPropagation();
      return;
    }
    if (box.hidden || !all.length) return;
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (move) { event.preventDefault(); choose(all[(at + move + all.length) % all.length]); }
    if (event.key === "Enter" && at >= 0) { event.preventDefault(); location.assign(all[at].href); }
  });

  input.addEventListener("focus", () => {
    if (box.childNodes.length && asked === input.value.trim()) {
      box.hidden = false;
      input.setAttribute("aria-expanded", "true");
    }
  });
  document.addEventListener("click", (event) => { if (!event.target.closest(".search")) close(); });
  input.addEventListener("blur", (event) => {
    if (!event.relatedTarget || !box.contains(event.relatedTarget)) setTimeout(close, 150);
  });
})();
