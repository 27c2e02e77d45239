// The stream as a timeline: lanes of events on a canvas, and the complex events of the page on them.

import { COLOURS, h } from "./dom";
import { column, type Reply, type Row, type Session, type TimelineHead } from "./messages";

const LEFT = 128, RIGHT = 14, AXIS = 24, TOP = 8;
const FEW = 2_500;
const MINUTE = 60_000, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 15e3, 30e3, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 28 * DAY, 91 * DAY, 182 * DAY, 365 * DAY, 730 * DAY, 1825 * DAY, 3650 * DAY];

interface Given { session: Session; choose: (position: number) => void; pick: (number: string) => void }

export class Timeline {
  readonly element: HTMLElement;
  readonly buttons: HTMLElement;
  private canvas = h("canvas", { tabindex: 0, role: "img" });
  private context = this.canvas.getContext("2d")!;
  private head: TimelineHead | null = null;
  private x = new Float64Array(0);
  private lane = new Uint16Array(0);
  private bins = new Uint32Array(0);
  private from = 0;
  private to = 1;
  private rows: Row[] = [];
  private labels: string[] = [];
  private chosen: string | null = null;
  private event: number | null = null;
  private asked = false;
  private width = 0;
  private height = 0;
  private style: Record<string, string> = {};
  private counts = new Uint16Array(0);
  private loading = 0;
  private detail: number | undefined;
  /** Milliseconds that the last frame took to draw. */
  drawn = 0;

  constructor(private given: Given) {
    const button = (name: string, text: string, act: () => void) => h("button", { type: "button", "aria-label": name, title: name, click: act }, text);
    this.element = h("div", { class: "timeline" }, this.canvas);
    this.buttons = h("div", { class: "zoom", role: "group", "aria-label": "Zoom of the timeline" },
      button("Zoom in", "+", () => this.zoom(0.5)), button("Zoom out", "−", () => this.zoom(2)), button("Show all", "All", () => this.all()));
    this.listen();
    new ResizeObserver(() => this.fit()).observe(this.element);
  }

  /** Loads the events, in lanes by a column or, where it is null, by type. */
  async load(by: string | null, from?: number, to?: number): Promise<void> {
    const turn = ++this.loading;
    const reply = await this.given.session.ask<TimelineHead>({ kind: "timeline", by, from, to });
    if (turn !== this.loading || reply.error) return;
    this.take(reply, from === undefined);
  }

  private take(reply: Reply<TimelineHead>, whole: boolean): void {
    this.head = reply;
    if (reply.binned) {
      this.bins = column(reply.buffers[0]!, Uint32Array);
      this.x = new Float64Array(0);
    } else {
      this.x = column(reply.buffers[0]!, Float64Array);
      this.lane = column(reply.buffers[1]!, Uint16Array);
    }
    if (whole) this.all();
    const lanes = Math.max(1, reply.lanes.length);
    this.canvas.style.height = `${Math.round(TOP + AXIS + Math.min(300, Math.max(84, lanes * 30)))}px`;
    this.canvas.setAttribute("aria-label", `Timeline of ${reply.total.toLocaleString("en")} events in ${lanes} lanes: ${reply.lanes.slice(0, 12).join(", ")}. Arrow keys move, plus and minus zoom, n and p go from event to event.`);
    this.fit();
  }

  get by(): string | null {
    return this.head?.by ?? null;
  }

  show(rows: Row[], labels: string[], chosen: string | null): void {
    this.rows = rows;
    this.labels = labels;
    this.chosen = chosen;
    this.redraw();
  }

  /** Moves so that a complex event is seen. */
  reveal(row: Row): void {
    if (row.from >= this.from && row.to <= this.to && row.to - row.from > (this.to - this.from) / 60) return;
    const length = Math.max(row.to - row.from, (this.total.to - this.total.from) / 5e3) * 4;
    this.window((row.from + row.to - length) / 2, (row.from + row.to + length) / 2);
  }

  all(): void {
    const { from, to } = this.total;
    const margin = (to - from) * 0.01 || 0.5;
    this.window(from - margin, to + margin);
  }

  private get total(): { from: number; to: number } {
    return { from: this.head?.from ?? 0, to: this.head?.to ?? 1 };
  }

  window(from: number, to: number): void {
    const { from: first, to: last } = this.total;
    const longest = (last - first || 1) * 1.2, shortest = Math.max(longest * 1e-7, 1e-6);
    const length = Math.min(Math.max(to - from, shortest), longest);
    const middle = Math.min(Math.max((from + to) / 2, first), last);
    this.from = middle - length / 2;
    this.to = middle + length / 2;
    this.redraw();
    if (this.head?.binned || (this.head && this.head.events < this.head.total)) {
      clearTimeout(this.detail);
      this.detail = window.setTimeout(() => void this.load(this.by, this.from - length / 2, this.to + length / 2), 120);
    }
  }

  zoom(factor: number, at = (this.from + this.to) / 2): void {
    this.window(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  pan(share: number): void {
    const length = this.to - this.from;
    this.window(this.from + length * share, this.to + length * share);
  }

  private scale(x: number): number {
    return LEFT + ((x - this.from) / (this.to - this.from)) * (this.width - LEFT - RIGHT);
  }

  private at(pixel: number): number {
    return this.from + ((pixel - LEFT) / (this.width - LEFT - RIGHT)) * (this.to - this.from);
  }

  private get laneHeight(): number {
    return (this.height - TOP - AXIS) / Math.max(1, this.head?.lanes.length ?? 1);
  }

  private middle(lane: number): number {
    return TOP + (lane + 0.5) * this.laneHeight;
  }

  private listen(): void {
    const canvas = this.canvas;
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) this.pan((event.deltaX || event.deltaY) / 1000);
      else this.zoom(Math.exp(event.deltaY / 400), this.at(event.offsetX));
    }, { passive: false });
    let begun: { x: number; from: number; to: number; moved: boolean } | null = null;
    canvas.addEventListener("pointerdown", (event) => {
      begun = { x: event.offsetX, from: this.from, to: this.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!begun) return;
      const by = ((begun.x - event.offsetX) / (this.width - LEFT - RIGHT)) * (begun.to - begun.from);
      if (Math.abs(begun.x - event.offsetX) > 3) begun.moved = true;
      if (begun.moved) this.window(begun.from + by, begun.to + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (begun && !begun.moved) this.click(event.offsetX, event.offsetY);
      begun = null;
    });
    canvas.addEventListener("pointercancel", () => { begun = null; });
    canvas.addEventListener("keydown", (event) => {
      const acts: Record<string, () => void> = {
        ArrowLeft: () => this.pan(-0.15), ArrowRight: () => this.pan(0.15), "+": () => this.zoom(0.6), "=": () => this.zoom(0.6),
        "-": () => this.zoom(1 / 0.6), "0": () => this.all(), Home: () => this.all(), n: () => this.step(1), p: () => this.step(-1),
      };
      const act = acts[event.key];
      if (act && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); act(); }
    });
  }

  private step(by: number): void {
    const last = (this.head?.total ?? 1) - 1;
    const begin = this.event === null ? (this.head?.first ?? 0) + lowest(this.x, this.from) - by : this.event;
    this.mark(Math.min(Math.max(begin + by, 0), last));
  }

  private mark(position: number): void {
    this.event = position;
    this.redraw();
    this.given.choose(position);
  }

  /** The mark of a complex event near a place, else the event there. */
  private click(px: number, py: number): void {
    const near = 9;
    for (const row of this.rows)
      for (const label of row.labels)
        for (let i = 0; i < label.positions.length; i++) {
          const lane = this.laneOf(label.positions[i]!);
          if (lane !== null && Math.abs(this.scale(label.at[i]!) - px) < near && Math.abs(this.middle(lane) - py) < near) {
            this.given.pick(row.number);
            this.mark(label.positions[i]!);
            return;
          }
        }
    const lane = Math.floor((py - TOP) / this.laneHeight);
    let best = -1, distance = near;
    for (let i = lowest(this.x, this.at(px - near)); i < this.x.length && this.scale(this.x[i]!) <= px + near; i++) {
      const apart = Math.abs(this.scale(this.x[i]!) - px);
      if (this.lane[i] === lane && apart < distance) { best = i; distance = apart; }
    }
    if (best >= 0) this.mark((this.head?.first ?? 0) + best);
  }

  private laneOf(position: number): number | null {
    const place = position - (this.head?.first ?? 0);
    return this.x.length && place >= 0 && place < this.x.length ? this.lane[place]! : null;
  }

  private fit(): void {
    const ratio = devicePixelRatio || 1;
    this.width = this.element.clientWidth;
    this.height = this.canvas.clientHeight;
    if (!this.width || !this.height) return;
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.redraw();
  }

  /** Draws in the colours that there are now. */
  recolour(): void {
    this.style = {};
    this.redraw();
  }

  redraw(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const begun = performance.now();
      this.draw();
      this.drawn = performance.now() - begun;
    });
  }

  private colours(name: string): string {
    if (!this.style["ink"]) {
      const style = getComputedStyle(this.element);
      for (const known of ["ink", "quiet", "line", "band", "event", "panel", "accent"]) this.style[known] = style.getPropertyValue(`--${known}`).trim();
      for (let i = 0; i < COLOURS; i++) this.style[`c${i}`] = style.getPropertyValue(`--c${i}`).trim();
    }
    return this.style[name] ?? "";
  }

  private draw(): void {
    const { head, context } = this;
    if (!head || !this.width) return;
    context.clearRect(0, 0, this.width, this.height);
    context.font = '12px system-ui, -apple-system, "Segoe UI", sans-serif';
    this.drawLanes(head);
    this.drawAxis(head);
    context.save();
    context.beginPath();
    context.rect(LEFT, 0, this.width - LEFT - RIGHT + 6, this.height - AXIS + 4);
    context.clip();
    if (head.binned) this.drawBins(head);
    else this.drawEvents(head);
    this.drawRows();
    context.restore();
  }

  private drawLanes(head: TimelineHead): void {
    const { context } = this;
    const height = this.laneHeight, every = Math.ceil(14 / height);
    context.textBaseline = "middle";
    context.textAlign = "right";
    head.lanes.forEach((name, number) => {
      if (number % 2 === 0) {
        context.fillStyle = this.colours("band");
        context.fillRect(LEFT - 6, TOP + number * height, this.width - LEFT - RIGHT + 12, height);
      }
      if (number % every) return;
      context.fillStyle = this.colours("ink");
      context.fillText(short(context, name, LEFT - 20), LEFT - 12, this.middle(number));
    });
  }

  private drawAxis(head: TimelineHead): void {
    const { context } = this;
    const wanted = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 110));
    const rough = (this.to - this.from) / wanted;
    const power = 10 ** Math.floor(Math.log10(rough));
    const step = head.axis === "date"
      ? (STEPS.find((one) => one >= rough) ?? 3650 * DAY * Math.ceil(rough / (3650 * DAY)))
      : Math.max([1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough)!, head.axis === "position" ? 1 : 0);
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    const bottom = this.height - AXIS;
    let date = "";
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.scale(at)) + 0.5;
      context.strokeStyle = this.colours("line");
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, bottom + 4);
      context.stroke();
      let text: string;
      if (head.axis === "date") {
        const [day, clock] = moment(at, step);
        text = step >= DAY ? day : day === date ? clock : `${day.slice(5)} ${clock}`;
        date = day;
      } else text = Number(at.toPrecision(12)).toLocaleString("en");
      context.fillStyle = this.colours("quiet");
      if (x > LEFT + 20 && x < this.width - 34) context.fillText(text, x, this.height - 6);
    }
  }

  private drawEvents(head: TimelineHead): void {
    const { context, x, lane } = this;
    const first = lowest(x, this.from), last = lowest(x, this.to);
    const height = this.laneHeight;
    const size = Math.min(height * 0.5, 16);
    context.fillStyle = this.colours("event");
    if (last - first <= FEW) {
      const radius = Math.max(1.5, Math.min(3, height / 5));
      for (let i = first; i < last; i++) {
        const px = this.scale(x[i]!), py = this.middle(lane[i]!);
        context.globalAlpha = 0.75;
        context.beginPath();
        context.arc(px, py, radius, 0, 7);
        context.fill();
      }
    } else {
      // One bar for each pixel of a lane that has events, darker where there are more.
      const wide = Math.ceil(this.width - LEFT - RIGHT) + 1, cells = wide * head.lanes.length;
      if (this.counts.length < cells) this.counts = new Uint16Array(cells);
      const counts = this.counts.fill(0, 0, cells);
      const scale = (this.width - LEFT - RIGHT) / (this.to - this.from), from = this.from;
      for (let i = first; i < last; i++) {
        const place = lane[i]! * wide + (((x[i]! - from) * scale) | 0);
        if (counts[place]! < 65535) counts[place]!++;
      }
      let most = 1;
      for (let i = 0; i < cells; i++) if (counts[i]! > most) most = counts[i]!;
      this.drawCounts(counts, wide, head.lanes.length, most, size, 1);
    }
    context.globalAlpha = 1;
    if (this.event !== null && this.laneOf(this.event) !== null) {
      const px = this.scale(x[this.event - head.first]!), py = this.middle(this.laneOf(this.event)!);
      context.strokeStyle = this.colours("accent");
      context.lineWidth = 2;
      context.beginPath();
      context.arc(px, py, 7, 0, 7);
      context.stroke();
      context.lineWidth = 1;
    }
  }

  private drawCounts(counts: Uint16Array | Uint32Array, wide: number, lanes: number, most: number, size: number, pixels: number, shift = 0): void {
    const { context } = this;
    // One path for each level of darkness; neighbours of one level are one bar.
    const levels = 5;
    const ends = Array.from({ length: levels - 1 }, (_, i) => Math.expm1(((i + 1) / levels) * Math.log1p(most)));
    const paths = Array.from({ length: levels + 1 }, () => new Path2D());
    const level = (count: number) => {
      if (!count) return 0;
      let found = 1;
      while (found < levels && count > ends[found - 1]!) found++;
      return found;
    };
    for (let lane = 0; lane < lanes; lane++) {
      const middle = this.middle(lane), row = lane * wide;
      let begun = 0, here = level(counts[row]!);
      for (let i = 1; i <= wide; i++) {
        const next = i < wide ? level(counts[row + i]!) : -1;
        if (next === here) continue;
        if (here) {
          const tall = Math.max(3, size * (0.35 + (0.65 * here) / levels));
          paths[here]!.rect(LEFT + shift + begun * pixels, middle - tall / 2, Math.max(1, (i - begun) * pixels), tall);
        }
        begun = i;
        here = next;
      }
    }
    for (let i = 1; i <= levels; i++) {
      context.globalAlpha = 0.25 + (0.6 * i) / levels;
      context.fill(paths[i]!);
    }
    context.globalAlpha = 1;
  }

  private drawBins(head: TimelineHead): void {
    const begin = this.scale(head.low), pixels = (this.scale(head.high) - begin) / head.bins;
    const most = this.bins.reduce((a, b) => Math.max(a, b), 1);
    this.context.fillStyle = this.colours("event");
    this.drawCounts(this.bins, head.bins, head.lanes.length, most, Math.min(this.laneHeight * 0.5, 16), pixels, begin - LEFT);
  }

  private drawRows(): void {
    const chosen = this.rows.find((row) => row.number === this.chosen);
    for (const row of this.rows) if (row !== chosen && row.to >= this.from && row.from <= this.to) this.drawRow(row, false);
    if (chosen) this.drawRow(chosen, true);
  }

  private drawRow(row: Row, strong: boolean): void {
    const { context } = this;
    const marks: [number, number, number][] = [];
    for (const label of row.labels) {
      const place = this.labels.indexOf(label.label);
      if (place >= 0) label.positions.forEach((position, i) => {
        const lane = this.laneOf(position) ?? this.laneByName(row);
        if (lane !== null) marks.push([this.scale(label.at[i]!), this.middle(lane), place]);
      });
    }
    marks.sort((a, b) => a[0] - b[0]);
    if (!marks.length) return;
    context.globalAlpha = strong ? 1 : 0.3;
    context.strokeStyle = this.colours(strong ? "ink" : "quiet");
    context.lineWidth = strong ? 2 : 1.25;
    context.lineJoin = "round";
    context.beginPath();
    context.moveTo(this.scale(row.from), marks[0]![1]);
    for (const [px, py] of marks) context.lineTo(px, py);
    context.lineTo(this.scale(row.to), marks[marks.length - 1]![1]);
    context.stroke();
    context.globalAlpha = strong ? 1 : 0.85;
    const radius = strong ? 5.5 : 3.5;
    for (const [px, py, place] of marks) {
      if (px < LEFT - 8 || px > this.width) continue;
      context.beginPath();
      context.arc(px, py, radius, 0, 7);
      context.fillStyle = this.colours(`c${place % COLOURS}`);
      context.fill();
      context.strokeStyle = this.colours("panel");
      context.lineWidth = strong ? 1.5 : 1;
      context.stroke();
    }
    context.lineWidth = 1;
    context.globalAlpha = 1;
  }

  private laneByName(row: Row): number | null {
    const by = this.by;
    if (by === null || !(by in row.partition)) return null;
    const lane = this.head!.lanes.indexOf(String(row.partition[by]));
    return lane < 0 ? null : lane;
  }
}

/** The first place of a sorted column that is not below a value. */
function lowest(values: Float64Array, value: number): number {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function short(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let cut = text;
  while (cut.length > 1 && context.measureText(`${cut}…`).width > width) cut = cut.slice(0, -1);
  return `${cut}…`;
}

/** Day and time of day of an instant, as exact as a step between ticks needs. */
function moment(at: number, step: number): [string, string] {
  const text = new Date(at).toISOString();
  const end = step < 1000 ? 23 : step < MINUTE ? 19 : 16;
  return [text.slice(0, 10), text.slice(11, end)];
}
