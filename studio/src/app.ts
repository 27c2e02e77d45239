// The studio: an editor, the automaton, the timeline, and tabs; asks the session and shows what it says.

import { drawAutomaton } from "./automaton";
import { afterDrawing, cell, fill, grouped, h, plural } from "./dom";
import { Editor } from "./editor";
import type { Hello, Message, Mistake, Page, Reply, Row, Section, Session, Typed, Way, WhyNot } from "./messages";
import { codePanel, funnelPanel, labelsOf, planPanel, rowsTable, whyNotPanel, type Shown } from "./panels";
import { followScheme } from "./scheme";
import { Timeline } from "./timeline";

const ROWS = 50;
/** Milliseconds without a key before a text is asked about, and before what else belongs to its answer is. */
const PAUSE = 30, CALM = 120;
/** What is asked about a text, and is of no use once there is another one. */
const OF_TEXT = ["typed", "automaton", "plan", "count", "page", "states", "funnel", "partials", "why_not", "code"];
const TABS = { answer: "Answer", funnel: "Funnel", partials: "Partial matches", why: "Why not?", plan: "Plan", code: "Code" } as const;
type Tab = keyof typeof TABS;

interface Outside { text?: string; wrote?: (text: string) => void }

let studios = 0;

export class App {
  private editor!: Editor;
  private timeline!: Timeline;
  private hello!: Reply<Hello>;
  private turn = 0;
  private pending: number | undefined;
  private later: number | undefined;
  private running = 0;
  private tab: Tab = "answer";
  private asked = new Set<Tab>();
  private valid = false;
  private params: Record<string, string> = {};
  private lanesChosen = false;
  private page: Page = { at: "0", rows: [], last: true };
  private shown: Shown = { labels: [], hidden: new Set() };
  private count: string | null = null;
  private chosen: string | null = null;
  private drawing: string | null = null;
  private id = `estero-${studios++}`;
  /** Milliseconds from the last change of the text until its answer is drawn. */
  answered = 0;
  private changedAt = 0;
  private unfollow = () => {};

  private status = h("p", { class: "status", role: "status" });
  private stop = h("button", { type: "button", class: "stop", hidden: true, click: () => this.session.cancel(OF_TEXT) }, "Stop");
  private mistakes = h("div", { class: "mistakes", "aria-live": "polite" });
  private inputs = h("div", { class: "params" });
  private picture = h("div", {});
  private event = h("div", { class: "event", "aria-live": "polite" });
  private lanes = h("select", { "aria-label": "Lanes of the timeline" });
  private panels = {} as Record<Tab, HTMLElement>;
  private tabs = {} as Record<Tab, HTMLButtonElement>;

  constructor(private root: HTMLElement, private session: Session, private outside: Outside = {}) {
    root.classList.add("estero-studio");
    root.setAttribute("data-lm-suppress-shortcuts", "true"); // keys are the studio's here, not JupyterLab's
  }

  async start(): Promise<void> {
    this.unfollow = followScheme(this.root, () => this.timeline?.recolour());
    this.hello = await this.session.ask<Hello>({ kind: "hello" });
    if (this.hello.error) {
      fill(this.root, h("p", { class: "failure", role: "alert" }, this.hello.error));
      return;
    }
    this.timeline = new Timeline({
      session: this.session, choose: (position) => void this.showEvent(position),
      pick: (number) => { const row = this.page.rows.find((one) => one.number === number); if (row) void this.pick(row, false); },
    });
    this.build();
    this.setLanes();
    const text = this.outside.text || this.hello.text;
    this.editor = new Editor(this.root.querySelector<HTMLElement>(".editor")!, text, {
      words: this.hello.words, session: this.session, changed: () => this.changed(), run: () => this.changed(0),
    });
    this.changed(0);
  }

  /** Leaves nothing behind that listens. */
  end(): void {
    this.unfollow();
    clearTimeout(this.pending);
    clearTimeout(this.later);
  }

  get text(): string {
    return this.editor.text;
  }

  set text(text: string) {
    if (this.editor) this.editor.text = text;
  }

  // ------------------------------------------------------------------------------ the page

  private build(): void {
    const { hello } = this;
    const columns = hello.columns.map((column) => column.name).join(", ");
    const header = h("header", { class: "top" },
      h("h1", {}, "Estero"),
      h("p", { title: `columns: ${columns}` }, hello.title ? `${hello.title} · ` : "", `${plural(hello.events, "event")} of ${plural(hello.types.length, "type")}`),
      hello.files === true && this.files());
    const examples = hello.examples.length > 0 && h("nav", { class: "examples", "aria-label": "Queries to try" },
      ...hello.examples.map((example) => h("button", { type: "button", click: () => { this.text = example.text; this.editor.view.focus(); } }, example.title)));
    const query = h("section", { class: "card query", "aria-label": "Query" },
      h("div", { class: "editor" }), this.inputs, this.mistakes, h("div", { class: "bar" }, this.status, this.stop));
    const automaton = h("section", { class: "card", "aria-labelledby": `${this.id}-automaton` }, h("h2", { id: `${this.id}-automaton` }, "Automaton"), this.picture);
    const stream = h("section", { class: "card stream", "aria-labelledby": `${this.id}-stream` },
      h("div", { class: "bar" }, h("h2", { id: `${this.id}-stream` }, "Stream"), h("div", { class: "bar" }, h("label", {}, "Lanes ", this.lanes), this.timeline.buttons)),
      this.timeline.element, this.event);
    fill(this.root, header, examples || null, h("div", { class: "two" }, query, automaton), stream, this.tabbed());
  }

  private tabbed(): HTMLElement {
    const names = Object.keys(TABS) as Tab[];
    for (const name of names) {
      this.tabs[name] = h("button", {
        type: "button", role: "tab", id: `${this.id}-tab-${name}`, "aria-controls": `${this.id}-panel-${name}`,
        click: () => this.show(name),
        keydown: (event: KeyboardEvent) => {
          const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
          if (!by) return;
          const next = names[(names.indexOf(name) + by + names.length) % names.length]!;
          this.show(next);
          this.tabs[next].focus();
        },
      }, TABS[name]);
      this.panels[name] = h("div", { role: "tabpanel", id: `${this.id}-panel-${name}`, "aria-labelledby": `${this.id}-tab-${name}`, class: `panel ${name}` });
    }
    const element = h("section", { class: "card", "aria-label": "Answer and what is known of it" },
      h("div", { role: "tablist", "aria-label": "What to see", class: "tabs" }, ...names.map((name) => this.tabs[name])),
      ...names.map((name) => this.panels[name]));
    this.mark();
    return element;
  }

  private mark(): void {
    for (const name of Object.keys(TABS) as Tab[]) {
      const on = name === this.tab;
      this.tabs[name].setAttribute("aria-selected", String(on));
      this.tabs[name].tabIndex = on ? 0 : -1;
      this.panels[name].hidden = !on;
    }
  }

  show(tab: Tab): void {
    this.tab = tab;
    this.mark();
    void this.fillTab();
  }

  private files(): HTMLElement {
    const name = h("input", { type: "text", placeholder: "name.ceql", "aria-label": "File to save the query in" });
    const list = h("ul", {});
    const said = h("p", { class: "quiet", role: "status" });
    const menu = h("details", { class: "files" }, h("summary", {}, "Files"),
      h("div", { class: "menu" }, list, h("form", {
        submit: (event: Event) => {
          event.preventDefault();
          const file = name.value.trim();
          if (file) void ask({ kind: "save", name: file.endsWith(".ceql") ? file : `${file}.ceql`, text: this.text }, "saved");
        },
      }, name, h("button", { type: "submit" }, "Save")), said));
    const ask = async (message: Message, done: string) => {
      const reply = await this.session.ask<{ names: string[]; text?: string }>(message);
      fill(said, reply.error ?? done);
      if (reply.error) return;
      if (reply.text !== undefined) { this.text = reply.text; menu.open = false; }
      fill(list, ...reply.names.map((file) => h("li", {}, h("button", {
        type: "button", click: () => { name.value = file; void ask({ kind: "open", name: file }, "opened"); },
      }, file))));
    };
    menu.addEventListener("toggle", () => { if (menu.open) void ask({ kind: "files" }, ""); });
    return menu;
  }

  private setLanes(): void {
    const { lanes } = this;
    fill(lanes, h("option", { value: "" }, "by type"), ...this.hello.lanes.map((name) => h("option", { value: name }, `by ${name}`)));
    lanes.addEventListener("change", () => { this.lanesChosen = true; void this.lanesBy(lanes.value || null); });
    void this.lanesBy(null);
  }

  private async lanesBy(by: string | null): Promise<void> {
    this.lanes.value = by ?? "";
    await this.timeline.load(by);
    this.timeline.show(this.page.rows, this.shown.labels, this.chosen);
  }

  // ------------------------------------------------------------------------------ the query

  private changed(delay = PAUSE): void {
    this.turn++;
    this.changedAt = performance.now();
    clearTimeout(this.pending);
    clearTimeout(this.later);
    this.session.cancel(OF_TEXT);
    this.pending = window.setTimeout(() => void this.ask(this.turn), delay);
  }

  private message(kind: string, more: Record<string, unknown> = {}): Message {
    return { kind, text: this.text, params: this.params, ...more };
  }

  private async ask(turn: number): Promise<void> {
    this.busy(true);
    const reply = await this.session.ask<Typed>(this.message("typed", { rows: ROWS }));
    if (turn !== this.turn) return;
    this.busy(false);
    if (reply.errors) this.checked(reply);
    if (reply.error) { this.fail(reply.error); return; }
    if (!this.valid) return;
    this.root.classList.remove("stale");
    this.count = reply.count ?? null;
    this.chosen = null;
    this.take(reply);
    this.tell(reply.ms, reply.notes);
    const begun = this.changedAt;
    afterDrawing(() => { this.answered = performance.now() - begun; });
    this.later = window.setTimeout(() => void this.askMore(turn, reply), this.drawing ? CALM : 0);
  }

  /** Shows what is wrong with a text, or which values it waits for. */
  private checked({ errors, parameters, key, ran }: Typed): void {
    this.editor.show(errors);
    this.showMistakes(errors);
    this.showParams(parameters);
    this.valid = errors.length === 0 && parameters.every((name) => this.params[name]?.trim());
    this.asked.clear();
    if (!this.valid) {
      fill(this.status, errors.length ? `${plural(errors.length, "mistake")} in the query.` : "The query waits for values of its parameters.");
      this.root.classList.add("stale");
      return;
    }
    this.outside.wrote?.(this.text);
    if (ran && !this.lanesChosen && key !== this.timeline.by && (key === null || this.hello.lanes.includes(key))) void this.lanesBy(key);
  }

  /** Asks for what can be seen a little later than the answer: the automaton, the tab, the number. */
  private async askMore(turn: number, reply: Reply<Typed>): Promise<void> {
    const drawn = await this.session.ask<{ automaton: string }>(this.message("automaton"));
    if (turn !== this.turn) return;
    if (!drawn.error) {
      this.drawing = drawn.automaton;
      fill(this.picture, drawAutomaton(this.drawing, null));
    }
    void this.fillTab();
    if (this.count !== null) return;
    this.busy(true);
    const counted = await this.session.ask<{ count: string }>(this.message("count"));
    if (turn !== this.turn) return;
    this.busy(false);
    this.count = counted.error ? null : counted.count;
    this.tell(reply.ms + counted.ms, [...reply.notes, ...(counted.error ? [`The complex events are not counted: ${counted.error}`] : [])]);
    this.showAnswer();
  }

  private busy(on: boolean): void {
    this.running = on ? performance.now() : 0;
    this.root.classList.toggle("busy", on);
    window.setTimeout(() => { this.stop.hidden = !(this.running && performance.now() - this.running > 350); }, on ? 400 : 0);
  }

  private tell(ms: number, notes: string[]): void {
    const number = this.count === null ? "Counting complex events…" : plural(this.count, "complex event");
    fill(this.status, h("b", {}, number), h("span", { class: "quiet" }, ` in ${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`));
    if (notes.length) this.status.append(h("details", { class: "notes" }, h("summary", {}, plural(notes.length, "note")), ...notes.map((note) => h("p", {}, note))));
  }

  private fail(error: string): void {
    this.busy(false);
    fill(this.status, h("span", { class: "failure" }, error));
    this.root.classList.add("stale");
  }

  private showMistakes(errors: Mistake[]): void {
    fill(this.mistakes, ...errors.map((error) => h("div", { class: "mistake" },
      h("p", {}, h("b", {}, error.message), error.hint ? h("span", {}, ` – ${error.hint}`) : error.expected ? h("span", { class: "quiet" }, ` – expected: ${error.expected}`) : ""),
      ...error.fixes.map((fix) => h("button", { type: "button", click: () => this.editor.mend(fix) }, fix.insert ? `Write ${fix.insert}` : "Leave it out")))));
  }

  private showParams(names: string[]): void {
    const there = [...this.inputs.querySelectorAll("input")].map((input) => input.name);
    if (there.join() === names.join()) return;
    fill(this.inputs, ...names.map((name) => {
      const input = h("input", { type: "text", name, value: this.params[name] ?? "", input: () => { this.params[name] = input.value; this.changed(150); } });
      return h("label", {}, `$${name} `, input);
    }));
  }

  // ------------------------------------------------------------------------------ the answer

  private take(page: Page): void {
    this.page = page;
    this.shown = labelsOf(page.rows, this.hello.types);
    this.showAnswer();
    this.timeline.show(page.rows, this.shown.labels, this.chosen);
  }

  private showAnswer(): void {
    const panel = this.panels.answer;
    const { rows } = this.page;
    if (!rows.length) {
      fill(panel, h("p", { class: "empty" }, "No complex events. ", h("button", { type: "button", click: () => { this.show("why"); this.tabs.why.focus(); } }, "Why not?")));
      return;
    }
    fill(panel, this.paging(), rowsTable(rows, {
      shown: this.shown, left: this.leftOut(), chosen: this.chosen, caption: "Complex events",
      pick: (row) => void this.pick(row), event: (position) => void this.showEvent(position),
    }));
  }

  /** Columns that say nothing new of an event: those of types. */
  private leftOut(): string[] {
    return [];
  }

  private paging(): HTMLElement {
    const at = BigInt(this.page.at), size = BigInt(ROWS);
    const count = this.count === null ? null : BigInt(this.count);
    const go = (to: bigint) => void this.goTo(to < 0n ? 0n : to);
    const button = (name: string, text: string, off: boolean, to: bigint) => h("button", { type: "button", "aria-label": name, title: name, disabled: off, click: () => go(to) }, text);
    const field = h("input", { type: "text", inputmode: "numeric", "aria-label": "Number of the complex event to go to", placeholder: "number" });
    const last = count === null ? at + size : count > 0n ? ((count - 1n) / size) * size : 0n;
    const range = `${grouped(String(at))} – ${grouped(String(at + BigInt(this.page.rows.length - 1)))}${count === null ? "" : ` of ${grouped(this.count!)}`}`;
    return h("div", { class: "bar paging" },
      h("div", { role: "group", "aria-label": "Pages" },
        button("First page", "«", at === 0n, 0n), button("Page before", "‹", at === 0n, at - size),
        button("Next page", "›", this.page.last, at + size), button("Last page", "»", this.page.last || count === null, last)),
      h("span", { role: "status" }, range),
      h("form", {
        submit: (event: Event) => {
          event.preventDefault();
          const wanted = field.value.replace(/[,_\s]/g, "");
          if (/^\d+$/.test(wanted)) go(BigInt(wanted));
        },
      }, h("label", {}, "Go to ", field), h("button", { type: "submit" }, "Go")));
  }

  private async goTo(at: bigint): Promise<void> {
    const turn = this.turn;
    const capped = this.count !== null && at >= BigInt(this.count) ? BigInt(this.count) - 1n : at;
    this.busy(true);
    const reply = await this.session.ask<Page>(this.message("page", { at: String(capped), rows: ROWS }));
    this.busy(false);
    if (turn !== this.turn) return;
    if (reply.error) { this.fail(reply.error); return; }
    this.chosen = null;
    this.take(reply);
    if (this.drawing) fill(this.picture, drawAutomaton(this.drawing, null));
  }

  private async pick(row: Row, reveal = true): Promise<void> {
    const turn = this.turn;
    this.chosen = row.number;
    this.showAnswer();
    this.panels.answer.querySelector<HTMLElement>('[aria-pressed="true"]')?.focus({ preventScroll: true });
    this.timeline.show(this.page.rows, this.shown.labels, this.chosen);
    if (reveal) this.timeline.reveal(row);
    const reply = await this.session.ask<Way>(this.message("states", { at: row.number }));
    if (turn !== this.turn || this.chosen !== row.number || !this.drawing) return;
    fill(this.picture, drawAutomaton(this.drawing, reply.error ? { way: null, why: reply.error } : reply));
  }

  private async showEvent(position: number): Promise<void> {
    const reply = await this.session.ask<{ event: { position: number; type: string; values: Record<string, unknown> } }>({ kind: "event", position });
    if (reply.error) { fill(this.event, reply.error); return; }
    const { event } = reply;
    fill(this.event, h("h3", {}, `Event ${grouped(event.position)} · ${event.type}`),
      h("dl", {}, ...Object.entries(event.values).flatMap(([name, value]) => [h("div", {}, h("dt", {}, name), h("dd", {}, cell(value)))])));
  }

  private async fillTab(): Promise<void> {
    const { tab, turn } = this;
    if (!this.valid || this.asked.has(tab) || tab === "answer") return;
    const panel = this.panels[tab];
    this.asked.add(tab);
    fill(panel, h("p", { class: "quiet" }, "Asking…"));
    const put = <T>(reply: Reply<T>, made: () => Node) => {
      if (turn === this.turn) fill(panel, reply.error ? h("p", { class: "failure" }, reply.error) : made());
    };
    if (tab === "plan") {
      const reply = await this.session.ask<{ sections: Section[] }>(this.message("plan"));
      put(reply, () => planPanel(reply.sections));
      return;
    }
    if (tab === "code") {
      const reply = await this.session.ask<{ code: Record<string, string> }>(this.message("code"));
      put(reply, () => codePanel(reply.code));
      return;
    }
    this.busy(true);
    if (tab === "funnel") {
      const reply = await this.session.ask<{ steps: Record<string, unknown>[] }>(this.message("funnel"));
      put(reply, () => funnelPanel(reply));
    } else if (tab === "partials") {
      const reply = await this.session.ask<Page>(this.message("partials", { rows: ROWS }));
      put(reply, () => reply.rows.length
        ? h("div", {}, h("p", {}, `${plural(reply.count!, "partial match", "partial matches")}: starts that came some steps, and not all of them.`), rowsTable(reply.rows, {
            shown: labelsOf(reply.rows, this.hello.types), left: this.leftOut(), chosen: null, caption: "Partial matches",
            event: (position) => void this.showEvent(position),
          }))
        : h("p", {}, "No partial matches."));
    } else if (tab === "why") {
      const reply = await this.session.ask<WhyNot>(this.message("why_not"));
      put(reply, () => whyNotPanel(reply, (text) => { this.text = text; this.show("answer"); }));
    }
    this.busy(false);
  }
}
