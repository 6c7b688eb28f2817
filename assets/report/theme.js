// Light and dark, and the colours that canvases draw with.

import { $$ } from "./dom.js";
import { floor, max, min, round } from "./math.js";

export let colors = {};
/** The custom properties of the style's first rule, without their dashes. */
function readColors() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    [...document.styleSheets[0].cssRules[0].style].map((
      name,
    ) => [name.slice(2), style.getPropertyValue(name).trim()]),
  );
}
export function setTheme(theme, keep) {
  document.documentElement.dataset.theme = theme;
  if (keep) {
    try {
      localStorage.setItem("strata-theme", theme);
    } catch { /* private windows have no storage */ }
  }
  for (const choice of $$("[data-theme-button]")) {
    choice.setAttribute("aria-pressed", String(choice.dataset.themeButton === theme));
  }
  colors = readColors();
}
export function initialTheme() {
  let kept = null;
  try {
    kept = localStorage.getItem("strata-theme");
  } catch { /* as above */ }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}

// Cividis, readable with every kind of colour vision (Nuñez, Anderton, Renslow 2018), at even
// steps.
const CIVIDIS = [
  [0, 32, 77],
  [31, 58, 110],
  [76, 85, 109],
  [107, 112, 115],
  [139, 139, 119],
  [174, 168, 111],
  [213, 201, 91],
  [255, 234, 70],
];
/** The colour of a share from 0 to 1, and an ink that can be read on it. */
export function heat(share) {
  const at = max(0, min(1, share)) * (CIVIDIS.length - 1),
    low = floor(at),
    high = min(CIVIDIS.length - 1, low + 1);
  const rgb = CIVIDIS[low].map((value, i) =>
    round(value + (CIVIDIS[high][i] - value) * (at - low))
  );
  return { fill: `rgb(${rgb.join(" ")})`, ink: share > 0.52 ? "#1b1a17" : "#ffffff" };
}
