// The tokens of the page as values.

export function css(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
