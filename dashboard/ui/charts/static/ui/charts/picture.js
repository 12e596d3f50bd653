// A drawing of the page as an image: the computed styles are copied into it, because an image has no style sheets.

const STYLES = [
  "fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-family", "font-size",
  "font-weight",
  "text-anchor", "paint-order",
  "stroke-linejoin", "shape-rendering", "vector-effect", "overflow"
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

export function download(sheet, name) {
  sheet.toBlob((blob) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${name}.png`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }, "image/png");
}
