// A chart as an image: title and unit, the drawing, and the names of its lines, on the background of the page.

import { colour, css, trace } from "./theme.js";

const SIDE = 16;

export function saveChart(canvas, { title, unit, about, lines, name }) {
  const scale = canvas.width / canvas.clientWidth;
  const width = canvas.clientWidth + 2 * SIDE;
  const rows = Math.max(1, lines.length);
  const height = canvas.clientHeight + 62 + rows * 16;
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [width * scale, height * scale];
  const pen = sheet.getContext("2d");
  pen.scale(scale, scale);
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, width, height);
  write(pen, title, `600 13px ${css("--font")}`, css("--ink"), SIDE, 22);
  const after = SIDE + pen.measureText(title).width + 8;
  write(pen, unit, `400 11px ${css("--font")}`, css("--ink-3"), after, 22);
  write(pen, about, `400 11px ${css("--font")}`, css("--ink-3"), SIDE, 38);
  pen.drawImage(canvas, SIDE, 46, canvas.clientWidth, canvas.clientHeight);
  lines.forEach((line, i) => {
    const y = 46 + canvas.clientHeight + 14 + i * 16;
    pen.fillStyle = colour(line.slot);
    trace(pen, line.slot, SIDE + 5, y - 4, 3.5);
    pen.fill();
    write(pen, line.name, `400 11px ${css("--font")}`, css("--ink-2"), SIDE + 16, y);
  });
  sheet.toBlob((blob) => download(URL.createObjectURL(blob), `${name}.png`), "image/png");
}

function write(pen, text, font, ink, x, y) {
  pen.font = font;
  pen.fillStyle = ink;
  pen.fillText(text, x, y);
}

export function download(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

// The page's policy blocks the URL of Plotly's own image export, but allows its SVG as a data URL.
export async function savePlot(element, name) {
  const { clientWidth: width, clientHeight: height } = element;
  const image = new Image();
  image.src = await window.Plotly.toImage(element, { format: "svg", width, height });
  await image.decode();
  const sheet = document.createElement("canvas");
  [sheet.width, sheet.height] = [2 * width, 2 * height];
  const pen = sheet.getContext("2d");
  pen.fillStyle = css("--surface");
  pen.fillRect(0, 0, sheet.width, sheet.height);
  pen.drawImage(image, 0, 0, sheet.width, sheet.height);
  sheet.toBlob((blob) => download(URL.createObjectURL(blob), `${name}.png`), "image/png");
}
