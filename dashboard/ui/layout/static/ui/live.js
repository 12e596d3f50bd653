// Polling that redraws only after a change: sends the ETag of the shown content, pauses while the tab is hidden, and
// marks an outdated page.
import { moment } from "./moments.js";

const STALE_AFTER = 45;
let checked = Date.now();
let shown = checked;
let place = null;

document.addEventListener("htmx:configRequest", (event) => {
  const shown = event.detail.elt.dataset.etag;
  if (shown === undefined) return;
  if (document.hidden || document.body.dataset.ended) { event.preventDefault(); return; }
  if (shown) event.detail.headers["If-None-Match"] = shown;
});

document.addEventListener("htmx:afterRequest", (event) => {
  const { elt, xhr, requestConfig } = event.detail;
  if (!elt.hasAttribute("data-etag") || requestConfig.verb !== "get") return;
  if (
    document.body.dataset.ended
    || new URL(xhr.responseURL || location.href, location.href).pathname === document.body.dataset.wayIn
  ) return;
  if (xhr.status === 200) elt.dataset.etag = xhr.getResponseHeader("ETag") || "";
  if (xhr.status === 200 || xhr.status === 304) checked = Date.now();
  say();
});

// A session that ended during polling: the content stays, and the page shows its age and a link to sign in again.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr, elt } = event.detail;
  if (
    elt.hasAttribute("data-etag") && new URL(xhr.responseURL, location.href).pathname === document.body.dataset.wayIn
  ) {
    event.detail.shouldSwap = false;
    ended();
  }
});

document.addEventListener("cw:checked", () => { checked = Date.now(); say(); });
document.addEventListener("cw:ended", ended);

function ended() {
  const note = document.getElementById("ended");
  if (!note || document.body.dataset.ended) return;
  document.body.dataset.ended = "1";
  note.querySelector("a").href =
    `${document.body.dataset.wayIn}?next=${encodeURIComponent(location.pathname + location.search)}`;
  since(note);
  note.hidden = false;
  say();
}

function since(note) {
  note.querySelector("[data-since]").textContent = moment(new Date(checked));
}

// A page that is not updated shows one note at any scroll position, and hides it after the next response.
function float(stale) {
  const note = document.getElementById("stale");
  if (!note || note.hidden === !stale) return;
  since(note);
  note.hidden = !stale;
}

// A redraw keeps the focused link and the scroll positions of wide tables.
document.addEventListener("htmx:beforeSwap", (event) => {
  const { elt } = event.detail;
  if (!elt.hasAttribute("data-etag")) return;
  const active = document.activeElement;
  place = {
    href: elt.contains(active) ? active.getAttribute("href") : null,
    scrolled: [...elt.querySelectorAll(".scroll")].map((box) => box.scrollLeft)
  };
});

document.addEventListener("htmx:afterSwap", (event) => {
  const elt = event.detail.elt;
  if (!place || !elt.hasAttribute("data-etag")) return;
  elt.querySelectorAll(".scroll").forEach((box, number) => { box.scrollLeft = place.scrolled[number] || 0; });
  if (place.href)
    [...elt.querySelectorAll("a[href]")].find((link) => link.getAttribute("href") === place.href)
      ?.focus({ preventScroll: true });
  place = null;
});

function say() {
  const age = (Date.now() - checked) / 1000;
  // a hidden tab does not poll
  const unanswered = (Date.now() - Math.max(checked, shown)) / 1000 > STALE_AFTER;
  float(unanswered && !document.body.dataset.ended && document.querySelector("[data-live]") !== null);
  document.querySelectorAll("[data-live]").forEach((element) => {
    const signedOut = Boolean(document.body.dataset.ended);
    const stale = unanswered || signedOut;
    element.classList.toggle("stale", stale);
    const text = age < 90 ? `${Math.round(age)}\u00a0s` : `${Math.round(age / 60)}\u00a0min`;
    element.textContent = signedOut
      ? "signed out, not updating"
      : stale
      ? `no response for ${text}`
      : `updated ${text} ago`;
  });
}

setInterval(() => { if (!document.hidden) say(); }, 2000);
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  shown = Date.now();
  window.htmx?.trigger(document.body, "shown");
});
