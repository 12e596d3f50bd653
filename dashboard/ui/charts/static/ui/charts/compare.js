// The Compare tab: histogram or cumulative curve. The server draws both; the address has the choice.

const shown = document.querySelector("[data-curve-shown]");
const buttons = document.querySelectorAll("[data-curve]");

buttons.forEach((button) => button.addEventListener("click", () => {
  const { curve } = button.dataset;
  const to = new URL(location.href);
  if (curve === "ecdf") to.searchParams.set("curve", curve);
  else to.searchParams.delete("curve");
  history.replaceState(history.state, "", to);
  shown.dataset.curveShown = curve;
  buttons.forEach((one) => one.setAttribute("aria-pressed", String(one === button)));
}));
