// SVG elements: text is always text, positions along the time axis are percentages, so that a chart of any width keeps
// its letters and marks at their size.

const SPACE = "http://www.w3.org/2000/svg";

export function node(name, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export const percent = (share) => `${(100 * share).toFixed(3)}%`;

// By slot: 1 baseline, 2 evaluated version, 3 to 6 other versions in order of deployment; as in the server's icons.
const SHAPES = {
  1: "M-3.2-3.2h6.4v6.4h-6.4z",
  2: "M-3.7 0a3.7 3.7 0 1 0 7.4 0a3.7 3.7 0 1 0-7.4 0z",
  3: "M0-4 4 3.6H-4z",
  4: "M0-4.4 4.4 0 0 4.4-4.4 0z",
  5: "M-1.3-4h2.6v2.7H4v2.6H1.300V4h-2.600V1.300H-4v-2.600h2.700z",
  6: "M-4-3.600H4L0 4z",
};

// A shape at a share of the width and a pixel of the height.
export function shape(slot, share, y, css = "") {
  const drawn = node("path", { d: SHAPES[slot] ?? SHAPES[2], class: `f${slot || 1} dotf ${css}`.trim() });
  return at(share, y, drawn);
}

export function at(share, y, ...children) {
  return node("svg", { x: percent(share), y, width: 1, height: 1, overflow: "visible" }, ...children);
}
