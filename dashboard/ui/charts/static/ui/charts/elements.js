// An element with its class and its text.

export function make(name, kind, words = "") {
  const element = document.createElement(name);
  element.className = kind;
  element.textContent = words;
  return element;
}
