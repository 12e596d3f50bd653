// The Fleet page: links of the table, the filter and the range change the address and refresh the part that updates, so
// that polling keeps filters, order and open rows. Without this script they load the page.
"use strict";
(() => {
  const live = document.getElementById("live");
  const form = document.getElementById("fleet-filter");
  if (!live || !window.htmx || !form) return;
  const WAIT_MS = 250;
  let timer = 0;
  let focused = "";

  function go(query, replace) {
    const address = `${location.pathname}${query.startsWith("?") ? query : ""}`;
    if (address === location.pathname + location.search) return;
    history[replace ? "replaceState" : "pushState"](null, "", address);
    refresh();
  }

  function refresh() {
    live.dataset.etag = "";
    live.setAttribute("aria-busy", "true");
    const asked = new URLSearchParams(location.search);
    const range = asked.get("range") || "24h";
    document.querySelectorAll("[data-set]").forEach((link) => {
      if (link.dataset.set === `range=${range}`) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    });
    form.querySelectorAll("input[name], select[name]").forEach((field) => {
      if (field !== document.activeElement) field.value = asked.get(field.name) || "";
    });
    window.htmx.trigger(live, "cw:address");
  }

  function changed(changes) {
    const asked = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value) asked.set(name, value);
      else asked.delete(name);
    }
    return `?${asked}`;
  }

  document.addEventListener("htmx:configRequest", (event) => {
    if (event.detail.elt === live) event.detail.path = location.pathname + location.search;
  });

  // The address may have changed while the answer was on its way.
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.elt !== live) return;
    focused = live.contains(document.activeElement) ? document.activeElement.id : "";
    const path = event.detail.requestConfig?.path;
    if (path && path !== location.pathname + location.search) event.detail.shouldSwap = false;
  });
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.elt !== live) return;
    live.removeAttribute("aria-busy");
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  });
  document.addEventListener("htmx:responseError", () => live.removeAttribute("aria-busy"));

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const href = link.getAttribute("href");
    if (link.dataset.set) {
      event.preventDefault();
      const [name, value] = link.dataset.set.split("=");
      go(changed({ [name]: value }));
    } else if (live.contains(link) && href.startsWith("?")) {
      event.preventDefault();
      go(href.split("#")[0]);
      if (link.closest(".pager")) live.scrollIntoView();
    }
  });

  function applied(replace) {
    const fields = Object.fromEntries(
      [...form.querySelectorAll("input[type=search], select")].map((field) => [field.name, field.value.trim()])
    );
    go(changed({ ...fields, page: "" }), replace);
  }
  form.querySelector("[type=submit]").remove();
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    applied(false);
  });
  form.addEventListener("change", (event) => { if (event.target.matches("select")) applied(false); });
  form.addEventListener("input", (event) => {
    if (!event.target.matches("input")) return;
    clearTimeout(timer);
    timer = setTimeout(() => applied(true), WAIT_MS);
  });
  window.addEventListener("popstate", refresh);
  document.querySelectorAll("form[data-view]").forEach((view) => {
    view.addEventListener("formdata", (event) => event.formData.set("query", location.search));
  });
})();
