// Plotly, fetched once and only when a chart of it comes into view: ten times as heavy as the rest of its page
// together.

let wanted;

// The style sheet that its bundle adds while it loads has to carry this page's nonce, or the policy blocks it.
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

// Calls back once, when the first of the boxes is about to be seen, or printed.
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
