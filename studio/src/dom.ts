// Elements with less writing, and how values are written for people.

type Attributes = Record<string, string | number | boolean | undefined | ((event: never) => void)>;
type Child = Node | string | null | undefined | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  set(element, attributes);
  element.append(...children.filter((child): child is Node | string => child != null && child !== false));
  return element;
}

function set(element: Element, attributes: Attributes): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value as unknown as EventListener);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== undefined && value !== false) element.setAttribute(name, String(value));
  }
}

export function fill(element: Element, ...children: Child[]): void {
  element.replaceChildren(...children.filter((child): child is Node | string => child != null && child !== false));
}

/** Does something once what has changed so far is drawn. */
export function afterDrawing(act: () => void): void {
  requestAnimationFrame(() => window.setTimeout(act));
}

/** A whole number with thousands apart, of any length. */
export function grouped(number: string | number): string {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

export function plural(number: string | number, noun: string, several = `${noun}s`): string {
  return `${grouped(number)} ${String(number) === "1" ? noun : several}`;
}

const TIME = /^(\d{4}-\d\d-\d\d) (\d\d:\d\d(?::\d\d(?:\.\d+)?)?)([+-]\d\d:\d\d)?$/;

/** A value as a cell shows it; of a time only what differs from the one `before`. */
export function cell(value: unknown, before?: unknown): string {
  if (value === null || value === undefined) return "–";
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(7)));
  if (typeof value === "object") return JSON.stringify(value);
  const time = TIME.exec(String(value));
  if (!time) return String(value);
  const other = TIME.exec(String(before ?? ""));
  return other && other[1] === time[1] ? time[2]! : `${time[1]} ${time[2]}`;
}

export const COLOURS = 8;

/** The class of the colour of a label, by its place among the labels. */
export function colour(place: number): string {
  return `c${place % COLOURS}`;
}
