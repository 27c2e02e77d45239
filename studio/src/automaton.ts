// The automaton as Python draws it, and the way of a complex event through it.

import { grouped, h, plural } from "./dom";
import type { Step, Way } from "./messages";

export function drawAutomaton(drawn: string, chosen: Way | null): HTMLElement {
  const way = chosen?.way ?? null;
  const picture = h("div", { class: "scroll drawn", tabindex: 0, role: "group", "aria-label": "Automaton" });
  picture.innerHTML = drawn;
  const chooses = (what: string) => picture.querySelector(what)?.classList.add("on");
  for (const { source, target } of way ?? []) {
    chooses(`[data-state="${source}"]`);
    chooses(`[data-state="${target}"]`);
    chooses(`[data-arc="${source} ${target}"]`);
  }
  return h("div", {}, picture, chosen && h("p", { class: "way", role: "status" }, way?.length
    ? `The chosen complex event went ${inWords(way)}.`
    : `Which states the chosen complex event went through is not known: ${chosen.why}.`));
}

/** One state after the other; or, where runs are gathered, what each event did. */
function inWords(way: Step[]): string {
  const line = way.every((step, i) => i === 0 || step.source === way[i - 1]!.target);
  if (line) {
    const states = [way[0]!.source, ...way.map((step) => step.target)];
    return `${states.filter((state, i) => i === 0 || state !== states[i - 1]).join(" → ")} in ${plural(way.length, "event")}`;
  }
  const events = new Map<number, Step[]>();
  for (const step of way) events.set(step.position, [...(events.get(step.position) ?? []), step]);
  return [...events].map(([position, steps]) =>
    `${steps.map((step) => step.source).join(" and ")} → ${steps[0]!.target} by event ${grouped(position)}`).join(", ");
}
