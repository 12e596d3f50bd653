// Plotly with the tokens of the page: no mode bar, no requests, and text that never becomes markup.

import { css } from "./theme.js";

const CONFIG = { displayModeBar: false, responsive: true, showTips: false };

// Plotly parses <b>, <a href> and &lt; in every text. A zero-width space after < and & keeps them literal.
export function inert(text) {
  return String(text).replace(/[<&]/g, "$&\u200b");
}

export function layout(extra) {
  const axis = {
    gridcolor: css("--grid"), zeroline: false, showline: false, ticks: "", fixedrange: true, automargin: false
  };
  return {
    paper_bgcolor: "transparent", plot_bgcolor: "transparent", showlegend: false, hovermode: "closest", dragmode: false,
    font: { family: css("--font"), size: 11, color: css("--ink-3") }, margin: { t: 8, r: 8, b: 28, l: 44 },
    hoverlabel: {
      bgcolor: css("--surface"),
      bordercolor: css("--line-2"),
      font: { size: 12, color: css("--ink"), family: css("--font") }
    },
    ...extra,
    xaxis: { ...axis, ...extra.xaxis }, yaxis: { ...axis, ...extra.yaxis },
  };
}

export function draw(element, traces, extra) {
  return window.Plotly.react(element, traces, layout(extra), CONFIG);
}
