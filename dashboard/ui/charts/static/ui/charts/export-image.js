// A driving chart as an image: title and unit, the drawing, and the names of its lines, on the background of the page.

import { download, picture } from "./picture.js";
import { symbol } from "./trend-pointer.js";
import { css } from "./theme.js";

const [SIDE, HEAD, ROW, SCALE] = [16, 46, 16, 2];
const OVER = 6; // the zigzag of a cut axis is wider than its column

export async function saveTrend({ chart, box, found }, about, name) {
  const column = box.querySelector(".ya");
  const [left, wide, high] = [column.clientWidth, found.plot.clientWidth, found.height];
  const [width, height] = [left + wide + 2 * SIDE, HEAD + high + ROW * (found.lines.length + 1)];
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [width * SCALE, height * SCALE];
  const pen = sheet.getContext("2d");
  pen.scale(SCALE, SCALE);
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, width, height);
  write(pen, chart.title, `600 13px ${css("--font")}`, css("--ink"), SIDE, 22);
  const after = SIDE + pen.measureText(chart.title).width + 8;
  write(pen, chart.unit, `400 11px ${css("--font")}`, css("--ink-3"), after, 22);
  write(pen, about, `400 11px ${css("--font")}`, css("--ink-3"), SIDE, 38);
  pen.drawImage(await picture(column, left + OVER, high), SIDE, HEAD);
  pen.drawImage(await picture(found.plot, wide, high), SIDE + left, HEAD);
  for (const [i, line] of found.lines.entries()) {
    const y = HEAD + high + 14 + i * ROW;
    pen.drawImage(await picture(placed(box, symbol(line.slot)), 9, 9), SIDE, y - 8);
    write(pen, line.name, `400 11px ${css("--font")}`, css("--ink-2"), SIDE + 16, y);
  }
  download(sheet, name);
}

// An element has computed styles only in the document.
function placed(box, drawn) {
  box.append(drawn);
  requestAnimationFrame(() => drawn.remove());
  return drawn;
}

function write(pen, text, font, ink, x, y) {
  pen.font = font;
  pen.fillStyle = ink;
  pen.fillText(text, x, y);
}
