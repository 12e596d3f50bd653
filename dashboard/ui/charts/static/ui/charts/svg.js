// Saves drawings of the page as images: a button names them with `data-svg`.

import { download, picture } from "./picture.js";
import { css } from "./theme.js";

async function save(drawing, name) {
  const { width, height } = drawing.getBoundingClientRect();
  const image = await picture(drawing, width, height);
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [2 * width + 32, 2 * height + 32];
  const pen = sheet.getContext("2d");
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(image, 16, 16, 2 * width, 2 * height);
  download(sheet, name);
}

// Parts of the page are replaced, so the document handles the clicks. A button saves the first visible drawing, or with
// `data-all` every visible drawing.
const show = () => document.querySelectorAll("[data-svg]").forEach((button) => { button.hidden = false; });
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-svg]");
  if (!button) return;
  const visible = [...document.querySelectorAll(button.dataset.svg)].filter((one) => one.getBoundingClientRect().width);
  const chosen = "all" in button.dataset ? visible : visible.slice(0, 1);
  chosen.forEach((drawing, i) => save(drawing, `${button.dataset.name}${i ? `-${i + 1}` : ""}`));
});
document.addEventListener("htmx:afterSwap", show);
show();
