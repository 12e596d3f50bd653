// The libraries of the panels: each loads once, when a person opens the panel that draws with it.

// Plotly's bundle adds a style sheet, which needs the nonce of the page, or the policy blocks it.
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

function loadScript(file) {
  return new Promise((loaded, failed) => {
    const script = document.createElement("script");
    script.src = new URL(`../../vendor/${file}`, import.meta.url);
    script.onload = loaded;
    script.onerror = () => { script.remove(); failed(new Error(`${file} did not load`)); };
    document.head.append(script);
  });
}

// A load that failed is tried again with the next call.
function once(load) {
  let found = null;
  return () => {
    found ??= load().catch((error) => { found = null; throw error; });
    return found;
  };
}

export const loadPlotly = once(async () => {
  const restore = withNonce();
  try {
    await loadScript("plotly.min.js");
  } finally {
    restore();
  }
  return window.Plotly;
});

export const loadChartJs = once(async () => {
  await loadScript("chart.js");
  return window.Chart;
});
