// What the tabs show: rows of an answer, funnel, partial matches, why not, plan, code.

import { afterDrawing, cell, colour, fill, grouped, h, plural } from "./dom";
import type { Label, Reply, Row, WhyNot } from "./messages";

const SHOWN = 3;
/** Rows that are there at once; those below what can be seen follow when these have been drawn. */
const FIRST = 12;

export interface Shown { labels: string[]; hidden: Set<string> }

/** The labels in order, and which are left out: types whose events have another label, too. */
export function labelsOf(rows: Row[], types: string[]): Shown {
  const labels = rows[0]?.labels.map((label) => label.label) ?? [];
  const hidden = new Set(labels.filter((name) => types.includes(name) && rows.every((row) => {
    const own = row.labels.find((label) => label.label === name)!;
    const others = new Set(row.labels.filter((label) => !types.includes(label.label)).flatMap((label) => label.positions));
    return own.positions.every((position) => others.has(position));
  })));
  return { labels: labels.filter((label) => !hidden.has(label)), hidden };
}

interface TableOptions {
  shown: Shown; left: string[]; chosen: string | null; caption: string;
  pick?: (row: Row) => void; event: (position: number) => void;
}

const PLACES = ["start", "end", "start_time", "end_time"];

export function rowsTable(rows: Row[], { shown, left, chosen, caption, pick, event }: TableOptions): HTMLElement {
  const first = rows[0]!;
  const others = Object.keys(first.values).filter((name) => !PLACES.includes(name));
  const timed = "start_time" in first.values;
  const partial = first.steps !== null;
  const numeric = new Set(others.filter((name) => rows.every((row) => typeof row.values[name] === "number")));
  const head = h("tr", {}, h("th", { scope: "col", class: "number" }, "#"), h("th", { scope: "col" }, timed ? "From – to" : "Positions"),
    partial && h("th", { scope: "col", class: "number" }, "Steps"),
    ...others.map((name) => h("th", { scope: "col", class: numeric.has(name) ? "number" : "" }, name)),
    ...shown.labels.map((label, place) => h("th", { scope: "col" }, h("span", { class: `dot ${colour(place)}` }), label)));
  const tableRow = (row: Row) => {
    const span = timed
      ? `${cell(row.values["start_time"])} – ${cell(row.values["end_time"], row.values["start_time"])}`
      : `${grouped(row.start)} – ${grouped(row.end)}`;
    const name = grouped(row.number);
    const on = row.number === chosen;
    return h("tr", { class: on ? "on" : "" },
      h("th", { scope: "row", class: "number" }, pick
        ? h("button", { type: "button", class: "link", "aria-pressed": on ? "true" : "false", "aria-label": `Complex event ${name}: show it on the timeline and in the automaton`, click: () => pick(row) }, name)
        : name),
      h("td", { class: "span", title: `positions ${row.start} to ${row.end}` }, span),
      partial && h("td", { class: "number" }, String(row.steps)),
      ...others.map((other) => h("td", { class: numeric.has(other) ? "number" : "" }, cell(row.values[other]))),
      ...shown.labels.map((label) => h("td", {}, labelCell(row.labels.find((one) => one.label === label)!, row, left, event))));
  };
  const atOnce = chosen === null ? FIRST : rows.length;
  const body = h("tbody", {}, ...rows.slice(0, atOnce).map(tableRow));
  if (rows.length > atOnce) afterDrawing(() => body.append(...rows.slice(atOnce).map(tableRow)));
  return h("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": caption },
    h("table", {}, h("caption", { class: "hidden" }, caption), h("thead", {}, head), body));
}

function labelCell(label: Label, row: Row, left: string[], event: (position: number) => void): HTMLElement {
  const events = label.events.slice(0, SHOWN).map((values, i) => {
    const position = label.positions[i]!;
    const said = Object.entries(values).filter(([name]) => !left.includes(name) && !(name in row.partition))
      .map(([name, value]) => h("span", { class: "value" }, h("i", {}, name), ` ${cell(value, row.values["start_time"])}`));
    return h("li", {}, h("button", { type: "button", class: "event-link", "aria-label": `Event ${grouped(position)}`, title: `Event ${grouped(position)}`, click: () => event(position) }, grouped(position)), ...said);
  });
  const more = label.count - Math.min(label.events.length, SHOWN);
  return h("ul", { class: "events" }, ...events, more > 0 && h("li", { class: "quiet" }, `and ${grouped(more)} more`));
}

export function funnelPanel(reply: Reply<{ steps: Record<string, unknown>[] }>): HTMLElement {
  const known = ["step", "part", "starts", "share", "median_wait"];
  const most = Math.max(1, ...reply.steps.map((step) => Number(step["starts"])));
  return h("ol", { class: "funnel" }, ...reply.steps.map((step) => {
    const starts = Number(step["starts"]);
    const share = step["share"] === null ? "" : `${(100 * Number(step["share"])).toFixed(1)} %`;
    const keys = Object.keys(step).filter((name) => !known.includes(name)).map((name) => `${name} ${cell(step[name])}`);
    return h("li", {},
      h("span", { class: "part" }, ...[...keys, String(step["part"])].join(" · ")),
      h("span", { class: "track" }, h("span", { class: "bar", style: `width:${Math.max(0.4, (100 * starts) / most)}%` })),
      h("span", { class: "figures" }, h("b", {}, grouped(starts)), ` ${share}`,
        step["median_wait"] != null && h("span", { class: "quiet" }, ` after ${cell(step["median_wait"])}`)));
  }));
}

export function whyNotPanel(reply: Reply<WhyNot>, write: (text: string) => void): HTMLElement {
  const most = Math.max(1, ...reply.steps.map((step) => step.events ?? 0));
  const came = reply.came === null ? "" : ` ${plural(reply.came, "event")} ${reply.came === 1 ? "comes" : "come"} to it${reply.passed === null || !reply.came ? "" : `, and ${reply.passed ? grouped(reply.passed) : "none"} of these satisf${reply.passed === 1 ? "ies" : "y"} all its conditions`}.`;
  const steps = reply.steps.map((step) => h("li", {},
    h("span", { class: "part" }, step.part),
    h("span", { class: "track" }, h("span", { class: "bar", style: `width:${Math.max(0.4, (100 * (step.events ?? 0)) / most)}%` })),
    h("span", { class: "figures" }, h("b", {}, step.events === null ? "not counted" : grouped(step.events)), step.events === null ? "" : ` event${step.events === 1 ? "" : "s"}`)));
  const reasons = reply.reasons.map((reason) => h("li", {},
    h("div", {}, h("p", {}, ...inWords(reason)), reason.nearest && h("p", { class: "quiet" }, reason.nearest)),
    reason.without !== null && h("button", { type: "button", click: () => write(reason.without!) }, "Try it without this")));
  const count = reply.found === null ? "an unknown number of complex events" : plural(reply.found, "complex event");
  return h("div", { class: "why" },
    h("h3", {}, reply.found === "0" ? "No complex events: how far it comes" : `There are ${count}: why not more?`),
    h("ol", { class: "funnel" }, ...steps),
    h("p", {}, "Waited for ", h("code", {}, reply.waited), ":", came),
    reasons.length > 0 && h("h3", {}, "What keeps events away"),
    h("ul", { class: "reasons" }, ...reasons),
    reply.unanswered.length > 0 && h("p", { class: "quiet" }, `Not looked at to the end: ${reply.unanswered.join("; ")}.`));
}

function inWords(reason: { kind: string; condition: string; events: number }): (Node | string)[] {
  const condition = h("code", {}, reason.condition);
  const number = h("b", {}, grouped(reason.events));
  switch (reason.kind) {
    case "type": return ["There are no events of type ", condition, "."];
    case "order": return ["No events come as ", condition, ", even without the conditions."];
    case "condition": return [condition, " rejects ", number, "."];
    case "choice": return [condition, " leaves out all of these."];
    default: return ["Without ", condition, ", ", number, " more."];
  }
}

export function planPanel(sections: { title: string; body: string }[]): HTMLElement {
  return h("div", { class: "plan" }, ...sections.filter((one) => one.title !== "Query").map((one, i) =>
    h("details", { open: i < 2 }, h("summary", {}, one.title), h("pre", { tabindex: 0, role: "group", "aria-label": one.title }, one.body))));
}

export function codePanel(code: Record<string, string>): HTMLElement {
  const names: Record<string, string> = { python: "Python", shell: "Command line", spark: "Spark" };
  return h("div", { class: "code" }, ...Object.entries(code).map(([kind, text]) => {
    const done = h("span", { class: "quiet", role: "status" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        fill(done, "copied");
      } catch {
        const range = document.createRange();
        range.selectNodeContents(block);
        getSelection()?.removeAllRanges();
        getSelection()?.addRange(range);
        fill(done, "chosen: press Ctrl-C");
      }
    };
    const block = h("pre", { tabindex: 0, role: "group", "aria-label": names[kind] ?? kind }, text);
    return h("section", {}, h("header", {}, h("h3", {}, names[kind] ?? kind), h("button", { type: "button", click: () => void copy(), "aria-label": `Copy ${names[kind] ?? kind}` }, "Copy"), done), block);
  }));
}
