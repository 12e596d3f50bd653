// The administration uses the theme of the pages: the user's choice, which the server sets on the root, else the
// current theme of the system.
"use strict";
(() => {
  const root = document.documentElement;
  const chosen = ["dark", "light"].find((theme) => root.classList.contains(theme)) || "auto";
  const dark = matchMedia("(prefers-color-scheme: dark)");
  localStorage.setItem("adminTheme", JSON.stringify(chosen));
  if (chosen !== "auto") return;
  const follow = () => root.classList.toggle("dark", dark.matches);
  follow();
  dark.addEventListener("change", follow);
})();
