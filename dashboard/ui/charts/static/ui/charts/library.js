// Loads Plotly once, when a chart comes into view, because it is ten times as large as the rest of the page.

let wanted;

// The style sheet that Plotly's bundle adds needs the nonce of the page, or the policy blocks it.
function withNonce() {
  const { nonce } = document.getElementById("plotly.js-style-global");
  const create = document.createElement;
  document.createElement = function (name, ...rest) {
    const element = create.call(this, name, ...rest);
    if (String(name).toLowerCase() === "style") element.nonce = nonce;
    return element;
  };
  return () => { document.createElement = create; };
}

function load() {
  return new Promise((loaded, failed) => {
    const restore = withNonce();
    const script = document.createElement("script");
    script.src = new URL("../../vendor/plotly.min.js", import.meta.url);
    script.onload = () => { restore(); if (window.Plotly) loaded(); else failed(); };
    script.onerror = () => { restore(); failed(); };
    document.head.append(script);
  });
}

export function plotly() {
  wanted ??= load();
  return wanted;
}

// Calls back once, when the first of the boxes comes into view or is printed.
export function whenNear(boxes, callback) {
  const near = new IntersectionObserver((entries) => {
    if (entries.some((entry) => entry.isIntersecting)) begin();
  }, { rootMargin: "200px" });
  function begin() {
    near.disconnect();
    window.removeEventListener("beforeprint", begin);
    callback();
  }
  boxes.forEach((box) => near.observe(box));
  window.addEventListener("beforeprint", begin);
}
