// Colours, shapes and dashes of versions from the tokens of the page, and a callback for theme changes.

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// By slot: 1 baseline, 2 evaluated version, 3 to 6 other versions in order of deployment.
const DASHES = { 3: [6, 3], 4: [2, 3], 5: [8, 3, 2, 3], 6: [1, 3] };

export function colour(slot) {
  return css(`--series-${slot}`);
}

export function dash(slot) {
  return DASHES[slot] || [];
}

// Traces the shape of a slot around a point; the caller fills it.
export function trace(context, slot, x, y, r) {
  context.beginPath();
  if (slot === 1) context.rect(x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8);
  else if (slot === 2) context.arc(x, y, r, 0, Math.PI * 2);
  else if (slot === 4) polygon(context, [[x, y - r * 1.2], [x + r * 1.2, y], [x, y + r * 1.2], [x - r * 1.2, y]]);
  else if (slot === 5) cross(context, x, y, r);
  else
    polygon(
      context,
      [-1, 1, 0].map((side, i) => [x + side * r * 1.1, y + (slot === 6 ? -1 : 1) * (i < 2 ? r * 0.9 : -r * 1.1)])
    );
}

function polygon(context, points) {
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.closePath();
}

function cross(context, x, y, r) {
  const thin = r * 0.35;
  context.rect(x - r, y - thin, 2 * r, 2 * thin);
  context.rect(x - thin, y - r, 2 * thin, 2 * r);
}

export function onThemeChange(redraw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  new MutationObserver(redraw).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
}
