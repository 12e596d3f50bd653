// Labels of deployments and alerts above a chart: the full text, else the short form, else none. Pure functions.

const PER_LETTER = 6.3;
const GAP = 7;
const GLYPH = 6;

const shorten = (text) => {
  const parts = text.split(/[.\-_/ ]/);
  return parts.length > 1 && parts[parts.length - 1] ? `.${parts[parts.length - 1]}` : `${text.slice(0, 6)}\u2026`;
};

const LONGEST = 24;
const cut = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}\u2026` : text);

const overlaps = (a, b) => a[0] < b[1] && b[0] < a[1];

// Each mark has its `x` in pixels, its `text`, whether it is `urgent`, and its preferred `side`. Urgent marks choose
// first. The answer has `text` and `side` of each mark, in the same order; without room `text` is empty.
export function placeLabels(marks, width) {
  const taken = marks.map(({ x }) => [x - GLYPH, x + GLYPH]);
  const placed = marks.map(() => ({ text: "", side: "right" }));
  const order = marks.map((_, i) => i).sort((a, b) => marks[b].urgent - marks[a].urgent || marks[b].x - marks[a].x);
  for (const i of order) {
    const { x, text, side, short } = marks[i];
    const sides = side === "left" ? ["left", "right"] : ["right", "left"];
    const forms = [...new Set([cut(text), short ?? shorten(text)])];
    const found = forms.flatMap((form) => sides.map((where) => ({ text: form, side: where }))).find((form) => {
      const length = form.text.length * PER_LETTER;
      const box = form.side === "left" ? [x - GAP - length, x - GAP] : [x + GAP, x + GAP + length];
      const free = box[0] >= 0 && box[1] <= width && taken.every((other, j) => j === i || !overlaps(box, other));
      if (free) taken.push(box);
      return free;
    });
    if (found) placed[i] = found;
  }
  return placed;
}
