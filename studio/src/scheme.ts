// Light or dark: what the notebook around is, else what the system asks for.

const ATTRIBUTES = ["class", "style", "theme", "data-theme", "data-jp-theme-light", "data-vscode-theme-kind"];

/** Keeps `data-scheme` of an element as its surroundings are, and says when that changes; returns what ends it. */
export function followScheme(element: HTMLElement, changed: () => void): () => void {
  const wished = matchMedia("(prefers-color-scheme: dark)");
  const look = () => {
    const scheme = isDark(element.parentElement, wished.matches) ? "dark" : "light";
    if (element.dataset["scheme"] === scheme) return;
    element.dataset["scheme"] = scheme;
    changed();
  };
  const watcher = new MutationObserver(look);
  for (const outside of [document.documentElement, document.body]) watcher.observe(outside, { attributes: true, attributeFilter: ATTRIBUTES });
  wished.addEventListener("change", look);
  look();
  return () => {
    watcher.disconnect();
    wished.removeEventListener("change", look);
  };
}

function isDark(around: HTMLElement | null, wished: boolean): boolean {
  const lab = document.body.dataset["jpThemeLight"];
  if (lab) return lab === "false";
  const code = document.body.dataset["vscodeThemeKind"];
  if (code) return /dark|high-contrast$/.test(code);
  if (document.body.classList.contains("estero-page")) return wished;
  for (let element = around; element; element = element.parentElement) {
    const [red, green, blue, opacity = 1] = (getComputedStyle(element).backgroundColor.match(/[\d.]+/g) ?? []).map(Number);
    if (blue !== undefined && opacity > 0.5) return 0.299 * red! + 0.587 * green! + 0.114 * blue < 128;
  }
  return wished;
}
