// The automaton as a picture: where everything stands is Python's; here it is drawn, and a way through it shown.

import { grouped, h, plural, svg } from "./dom";
import type { Drawing, Step, Way } from "./messages";

const INCH = 72;

export function drawAutomaton(drawing: Drawing, chosen: Way | null): HTMLElement {
  const way = chosen?.way ?? null;
  if (!drawing.states.length) {
    const said = drawing.many ? `${drawing.many} states are too many to be drawn.` : "No automaton.";
    return h("p", { class: "quiet" }, said);
  }
  const visited = new Set<number>();
  const taken = new Set<string>();
  for (const step of way ?? []) {
    visited.add(step.source).add(step.target);
    taken.add(`${step.source} ${step.target}`);
  }
  const place = ([x, y]: [number, number]): [number, number] => [x * INCH, -y * INCH];
  const radius = drawing.radius * INCH;
  const lineHeight = 14;
  const box = { left: Infinity, right: -Infinity, top: Infinity, bottom: -Infinity };
  const keep = (x: number, y: number, dx = 0, dy = 0) => {
    box.left = Math.min(box.left, x - dx); box.right = Math.max(box.right, x + dx);
    box.top = Math.min(box.top, y - dy); box.bottom = Math.max(box.bottom, y + dy);
  };
  const arcs: SVGElement[] = [], texts: SVGElement[] = [], circles: SVGElement[] = [];
  for (const arc of drawing.arcs) {
    const points = arc.points.map(place);
    points.forEach(([x, y]) => keep(x, y, 4, 4));
    const [x1, y1] = points[points.length - 1]!;
    const tail = points[Math.max(0, points.length - 3)]!;
    const angle = Math.atan2(y1 - tail[1], x1 - tail[0]);
    const on = taken.has(`${arc.source} ${arc.target}`);
    const shaft = points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join(" ");
    const wing = (turn: number) => `${(x1 - 8 * Math.cos(angle + turn)).toFixed(1)},${(y1 - 8 * Math.sin(angle + turn)).toFixed(1)}`;
    arcs.push(svg("g", { class: `arc${arc.faint ? " faint" : ""}${on ? " on" : ""}` },
      svg("polyline", { points: shaft }),
      svg("polygon", { points: `${x1.toFixed(1)},${y1.toFixed(1)} ${wing(0.42)} ${wing(-0.42)}` })));
    const [x, y] = place(arc.at);
    const width = Math.max(...arc.lines.map((line) => line.text.length)) * 6.3 + 8;
    const level = arc.source !== arc.target && Math.abs(y1 - points[0]![1]) < 8;
    keep(x, y, width / 2, (arc.lines.length * lineHeight) / 2 + 4);
    arc.lines.forEach((line, number) => {
      const apart = number - (arc.lines.length - 1) / 2;
      const dy = apart * lineHeight + (level ? (arc.lines.length % 2 ? -9 : 2.5 * Math.sign(apart)) : 0);
      texts.push(svg("text", { x: x.toFixed(1), y: (y + dy + 4).toFixed(1), class: line.kind }, line.text));
    });
  }
  const reached = new Set(drawing.arcs.flatMap((arc) => [arc.source, arc.target]));
  const isDrawn = (state: { initial: boolean }, number: number) => state.initial || reached.has(number);
  drawing.states.forEach((state, number) => {
    if (!isDrawn(state, number)) return;
    const [x, y] = place(state.at);
    keep(x, y, radius + (state.initial ? 34 : 6), radius + 6);
    if (state.initial) {
      const from = x - radius - 26, to = x - radius - 2;
      arcs.push(svg("g", { class: "arc" }, svg("polyline", { points: `${from},${y} ${to},${y}` }),
        svg("polygon", { points: `${to + 1},${y} ${to - 7},${y - 3.5} ${to - 7},${y + 3.5}` })));
    }
    circles.push(svg("g", { class: `state${visited.has(number) ? " on" : ""}` },
      svg("circle", { cx: x, cy: y, r: radius }),
      state.final && svg("circle", { cx: x, cy: y, r: radius - 3.5, class: "inner" }),
      svg("text", { x, y: y + 4 }, String(number))));
  });
  const margin = 6;
  const width = box.right - box.left + 2 * margin, height = box.bottom - box.top + 2 * margin;
  const names = drawing.states.flatMap((state, number) => isDrawn(state, number) ? [`${number}${state.initial ? " (initial)" : ""}${state.final ? " (accepts)" : ""}`] : []);
  const described = [
    `States ${names.join(", ")}.`,
    ...drawing.arcs.map((arc) => `From ${arc.source} to ${arc.target}: ${arc.lines.map((line) => line.text.replace("•", "marks")).join(", ")}.`),
  ].join(" ");
  const picture = svg("svg", {
    viewBox: `${(box.left - margin).toFixed(1)} ${(box.top - margin).toFixed(1)} ${width.toFixed(1)} ${height.toFixed(1)}`,
    style: `width:${Math.round(width)}px;aspect-ratio:${width.toFixed(0)}/${height.toFixed(0)}`,
    role: "img", "aria-label": `The automaton of the query. ${described}`,
  }, ...arcs, ...texts, ...circles);
  return h("div", { class: "automaton" },
    h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Automaton" }, picture as unknown as HTMLElement),
    drawing.legend.length > 0 && h("ul", { class: "legend" }, ...drawing.legend.map((line) => h("li", {}, line))),
    chosen && h("p", { class: "way", role: "status" }, way?.length
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
