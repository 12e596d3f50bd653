// Saves a drawing of the page as an image: the computed styles are copied into it, because an image has no style
// sheets.

import { download } from "./export-image.js";
import { css } from "./theme.js";

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font", "text-anchor", "paint-order",
  "stroke-linejoin", "shape-rendering"
];

function styled(drawing) {
  const copy = drawing.cloneNode(true);
  const from = [drawing, ...drawing.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const computed = getComputedStyle(from[i]);
    STYLES.forEach((name) => element.style.setProperty(name, computed.getPropertyValue(name)));
  });
  return copy;
}

export async function picture(drawing, width, height) {
  const copy = styled(drawing);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`;
  await image.decode();
  return image;
}

async function save(drawing, name) {
  const { width, height } = drawing.getBoundingClientRect();
  const image = await picture(drawing, width, height);
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [2 * width + 32, 2 * height + 32];
  const pen = sheet.getContext("2d");
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(image, 16, 16, 2 * width, 2 * height);
  sheet.toBlob((blob) => download(URL.createObjectURL(blob), `${name}.png`), "image/png");
}

// Parts of the page are replaced, so the document handles the clicks.
const show = () => document.querySelectorAll("[data-svg]").forEach((button) => { button.hidden = false; });
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-svg]");
  if (!button) return;
  const drawing = [...document.querySelectorAll(button.dataset.svg)].find((one) => one.getBoundingClientRect().width);
  if (drawing) save(drawing, button.dataset.name);
});
document.addEventListener("htmx:afterSwap", show);
show();
