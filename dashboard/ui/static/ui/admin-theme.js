// The administration has the theme of the pages: the one the person chose, which the server put on the root, else the
// system's, as it is now.
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
