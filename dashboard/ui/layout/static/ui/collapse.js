// On a phone a long page starts compact: sections with data-fold are folded, and only the first charts are shown.
"use strict";
(() => {
  if (!matchMedia("(max-width: 700px)").matches) return;
  const wanted = location.hash.length > 1 ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;

  document.querySelectorAll("section[data-fold]").forEach((section) => {
    const title = section.querySelector(":scope > header h2");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "fold";
    button.append(...title.childNodes);
    title.append(button);
    const show = (open) => {
      section.classList.toggle("folded", !open);
      button.setAttribute("aria-expanded", String(open));
    };
    button.addEventListener("click", () => show(section.classList.contains("folded")));
    show(Boolean(wanted && section.contains(wanted)));
  });

  const charts = document.querySelector("[data-few]");
  const shown = Number(charts?.dataset.few);
  const more = charts ? charts.querySelectorAll(":scope > figure").length - shown : 0;
  if (more <= 0) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "btn more";
  button.textContent = `Show ${more} more charts`;
  charts.querySelectorAll(":scope > figure")[shown - 1].after(button);
  charts.classList.add("few");
  button.addEventListener("click", () => {
    charts.classList.remove("few");
    charts.querySelectorAll(":scope > figure")[shown].querySelector("summary, h3").focus();
    button.remove();
  });
})();
