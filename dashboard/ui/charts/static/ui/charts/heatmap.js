// The heat strips of a table as one image: title, one line per instance, and the legend of the steps.

import { download, picture } from "./picture.js";
import { css } from "./theme.js";

const [SIDE, NAMES, STRIP, LINE, SCALE] = [16, 260, 640, 22, 2];

function write(pen, text, x, y, { bold = false, ink = "--ink-2", most = NAMES - 12 } = {}) {
  pen.font = `${bold ? 600 : 400} ${bold ? 13 : 11}px ${css("--font")}`;
  pen.fillStyle = css(ink);
  let said = text;
  while (said.length > 1 && pen.measureText(said).width > most) said = `${said.slice(0, -2)}…`;
  pen.fillText(said, x, y);
}

// Slots without a report show the hatched background, as on the page, to differ from the palest step.
async function draw(pen, strip, y) {
  pen.fillStyle = css("--line-2");
  for (let x = 0; x < STRIP; x += 4) pen.fillRect(SIDE + NAMES + x, y, 1, 14);
  pen.drawImage(await picture(strip, STRIP, 14), SIDE + NAMES, y, STRIP, 14);
}

// A canvas draws the white space of the markup as is; a page collapses it to one space.
const shown = (element) => element.textContent.replace(/[ \n]+/g, " ").trim();

async function save(table, name) {
  const rows = [...table.tBodies[0].rows];
  const steps = [...document.querySelectorAll("[data-steps] .state")];
  const [width, height] = [2 * SIDE + NAMES + STRIP, 2 * SIDE + 32 + rows.length * LINE + 24];
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [width * SCALE, height * SCALE];
  const pen = sheet.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, width, height);
  write(pen, shown(table.caption), SIDE, SIDE + 12, { bold: true, ink: "--ink", most: width - 2 * SIDE });
  for (const [i, row] of rows.entries()) {
    const y = SIDE + 32 + i * LINE;
    write(pen, `${shown(row.cells[0].querySelector("a"))}, ${shown(row.cells[1])}`, SIDE, y + 11);
    const strip = row.querySelector(".heatrow");
    if (strip) await draw(pen, strip, y);
    else write(pen, "no report", SIDE + NAMES, y + 11, { ink: "--ink-3" });
  }
  let x = SIDE;
  for (const step of steps) {
    const y = height - SIDE - 10;
    pen.drawImage(await picture(step.querySelector("svg"), 11, 11), x, y, 11, 11);
    write(pen, shown(step), x + 16, y + 10);
    x += 32 + pen.measureText(shown(step)).width;
  }
  download(sheet, name);
}

const button = document.querySelector("[data-heat]");
if (button) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const table = document.querySelector(button.dataset.heat);
    if (table) save(table, button.dataset.name);
  });
}
