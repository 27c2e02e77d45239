"""The style of what notebooks show: one sheet, for light and dark themes, without anything from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Final

from estero.markup.colours import DARK_PALETTE, PALETTE
from estero.markup.html import Html, element

_LIGHT: Final = {
    "ink": "var(--jp-content-font-color1, var(--vscode-editor-foreground, #1c2129))",
    "quiet": "#5a6372",
    "line": "#dfe3e9",
    "band": "#f5f7f9",
    "panel": "var(--jp-layout-color0, var(--vscode-editor-background, #ffffff))",
    "track": "#e4e9f0",
    "bar": "#7aa7d6",
    "accent": "#0b5cad",
    "keyword": "#7a3e9d",
    "string": "#1a6b3c",
    "digits": "#8f4500",
    "function": "#0b5cad",
    "none": "#8b94a3",
    **{f"c{place}": colour for place, colour in enumerate(PALETTE)},
}
_DARK: Final = {
    "ink": "var(--jp-content-font-color1, var(--vscode-editor-foreground, #e4e7ec))",
    "quiet": "#a0a9b8",
    "line": "#343c48",
    "band": "#1d222a",
    "panel": "var(--jp-layout-color0, var(--vscode-editor-background, #171b21))",
    "track": "#2d343f",
    "bar": "#3d6da3",
    "accent": "#79b8ff",
    "keyword": "#c79bf0",
    "string": "#8fd6a4",
    "digits": "#f0b37a",
    "function": "#79b8ff",
    "none": "#78828f",
    **{f"c{place}": colour for place, colour in enumerate(DARK_PALETTE)},
}
_LIGHT_THEMES: Final = (
    '[data-jp-theme-light="true"]',
    ".vscode-light",
    '[data-theme="light"]',
    '[theme="light"]',
)
_DARK_THEMES: Final = (
    '[data-jp-theme-light="false"]',
    ".vscode-dark",
    '[data-theme="dark"]',
    '[theme="dark"]',
)
"""How JupyterLab, VS Code, Sphinx and Colab say which theme is on; the system's choice counts elsewhere."""


def shown(*parts: object) -> str:
    """The parts with the style sheet that they need in any notebook."""
    return str(element("div", element("style", _sheet()), *parts, class_="estero"))


@cache
def _sheet() -> Html:
    light, dark = _variables(_LIGHT, "light"), _variables(_DARK, "dark")
    rules = files("estero.markup").joinpath("notebook.css").read_text(encoding="utf-8")
    colours = "".join(
        f".estero.estero .c{place} {{ --c: var(--c{place}); }}\n" for place in range(len(PALETTE))
    )
    return Html(
        f".estero {{ {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ .estero {{ {dark} }} }}\n"
        f"{_below(_LIGHT_THEMES)} {{ {light} }}\n{_below(_DARK_THEMES)} {{ {dark} }}\n{rules}{colours}"
    )


def _variables(colours: dict[str, str], scheme: str) -> str:
    return " ".join([f"color-scheme: {scheme};", *(f"--{name}: {value};" for name, value in colours.items())])


def _below(themes: tuple[str, ...]) -> str:
    return ", ".join(f"{theme} .estero" for theme in themes)
