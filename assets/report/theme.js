// Light and dark, and the colours that canvases draw with.

function setTheme(theme, keep) {
  document.documentElement.dataset.theme = theme;
  if (keep) { try { localStorage.setItem("strata-theme", theme); } catch { /* private windows have no storage */ } }
  for (const button of document.querySelectorAll("[data-theme-button]")) {
    button.setAttribute("aria-pressed", String(button.dataset.themeButton === theme));
  }
  colors = readColors();
}
function initialTheme() {
  let kept = null;
  try { kept = localStorage.getItem("strata-theme"); } catch { /* as above */ }
  return kept || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
}
let colors = {};
function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["bg", "surface", "well", "well-2", "fold", "rule", "rule-2", "ink", "ink-2", "ink-3", "ink-4", "edge", "tick", "tick-2", "accent", "accent-fill", "halo",
    "added", "added-text", "added-fill", "removed", "removed-text", "removed-fill", "changed", "changed-text", "changed-fill", "moved", "moved-text", "moved-fill", "sans", "mono"];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}
