// Polling that redraws only when something changed: sends the ETag of what is shown, rests while the tab is hidden, and says when the page is old.
"use strict";
(() => {
  const STALE_AFTER = 45;
  let checked = Date.now();

  document.addEventListener("htmx:configRequest", (event) => {
    const shown = event.detail.elt.dataset.etag;
    if (shown === undefined) return;
    if (document.hidden) { event.preventDefault(); return; }
    if (shown) event.detail.headers["If-None-Match"] = shown;
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr, requestConfig } = event.detail;
    if (!elt.hasAttribute("data-etag") || requestConfig.verb !== "get") return;
    if (xhr.status === 200) elt.dataset.etag = xhr.getResponseHeader("ETag") || "";
    if (xhr.status === 200 || xhr.status === 304) checked = Date.now();
    say();
  });

  // A session that ended during polling leads to the sign-in page instead of a page that silently grows old.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, elt } = event.detail;
    if (elt.hasAttribute("data-etag") && new URL(xhr.responseURL, location.href).pathname.startsWith("/accounts/")) {
      event.detail.shouldSwap = false;
      location.reload();
    }
  });

  // What the person has opened or is reading with the keyboard stays as it is until they are done.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { elt } = event.detail;
    if (!elt.hasAttribute("data-etag")) return;
    if (elt.querySelector("details[open]") || (elt.contains(document.activeElement) && document.activeElement !== elt)) {
      event.detail.shouldSwap = false;
      elt.dataset.etag = "";
    }
  });

  function say() {
    const age = (Date.now() - checked) / 1000;
    document.querySelectorAll("[data-live]").forEach((element) => {
      const stale = age > STALE_AFTER;
      element.classList.toggle("stale", stale);
      const text = age < 90 ? `${Math.round(age)}\u00a0s` : `${Math.round(age / 60)}\u00a0min`;
      element.textContent = stale ? `no answer for ${text}` : `updated ${text} ago`;
    });
  }

  setInterval(() => { if (!document.hidden) say(); }, 2000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) window.htmx?.trigger(document.body, "shown"); });
})();
