// Runs before Plotly: the style sheet that its bundle adds while it loads carries this page's nonce, so the policy has nothing to block.
"use strict";
(() => {
  const nonce = document.getElementById("plotly.js-style-global").nonce;
  const create = document.createElement;
  document.createElement = function (name, ...rest) {
    const element = create.call(this, name, ...rest);
    if (String(name).toLowerCase() === "style") element.nonce = nonce;
    return element;
  };
  document.addEventListener("DOMContentLoaded", () => { document.createElement = create; });
})();
