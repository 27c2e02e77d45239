// What the session answers (src/estero/studio/session.py), and the way to ask it.

export interface Fix { from: number; to: number; insert: string }
export interface Mistake { message: string; hint: string; expected: string; from: number; to: number; fixes: Fix[] }
export interface Label {
  label: string; count: number; positions: number[]; events: Record<string, unknown>[]; at: number[];
}
export interface Row {
  number: string; start: number; end: number; from: number; to: number; steps: number | null;
  values: Record<string, unknown>; partition: Record<string, unknown>; labels: Label[];
}
export interface Page { at: string; rows: Row[]; last: boolean; count?: string | null }
export interface Typed extends Page { ran: boolean; errors: Mistake[]; parameters: string[]; key: string | null }
export interface Section { title: string; body: string }
export interface Step { position: number; source: number; target: number }
/** The states of a complex event, or in words why they are not known. */
export interface Way { way: Step[] | null; why: string }
export interface Reason {
  kind: string; condition: string; events: number; nearest: string; without: string | null;
}
export interface WhyNot {
  found: string | null; steps: { part: string; events: number | null }[]; waited: string; came: number | null;
  passed: number | null; reasons: Reason[]; unanswered: string[]; undecided: number | null;
}
export interface Hello {
  version: string; title: string; words: Record<string, string[]>; types: string[];
  columns: { name: string; kind: string }[]; lanes: string[]; time: string | null; events: number; text: string;
  examples: { title: string; text: string }[]; files?: boolean;
}
export interface TimelineHead {
  lanes: string[]; types: string[]; axis: "date" | "number" | "position"; from: number; to: number;
  first: number; events: number; total: number; binned: boolean; by: string | null;
  bins: number; low: number; high: number;
}
export type Reply<T> = T & { kind: string; error?: string; notes: string[]; ms: number; buffers: DataView[] };
export type Message = { kind: string } & Record<string, unknown>;

export interface Session {
  ask<T>(message: Message): Promise<Reply<T>>;
  /** Has all that is asked now stop, or what of it is of these kinds. What is asked later is not meant. */
  cancel(kinds?: string[]): void;
}

/** The messages that wait for their answers, by their numbers: those that can be cancelled. */
class Waiting {
  private own = Math.random().toString(36).slice(2);
  private count = 0;
  private kinds = new Map<string, string>();

  begin(message: Message): string {
    const id = `${this.own}-${this.count++}`;
    this.kinds.set(id, message.kind);
    return id;
  }

  end(id: string): void {
    this.kinds.delete(id);
  }

  of(kinds?: string[]): string[] {
    return [...this.kinds].filter(([, kind]) => !kinds || kinds.includes(kind)).map(([id]) => id);
  }
}

/** A session behind a local server; `token` is that of its address. */
export function serverSession(token: string): Session {
  const address = (name: string) => `${name}?token=${encodeURIComponent(token)}`;
  const waiting = new Waiting();
  return {
    async ask<T>(message: Message): Promise<Reply<T>> {
      let answer: Response;
      const id = waiting.begin(message);
      try {
        answer = await fetch(address("message"), { method: "POST", body: JSON.stringify({ ...message, id }) });
      } catch {
        return failed<T>(message, "the studio's server has ended: start estero studio again");
      } finally {
        waiting.end(id);
      }
      if (!answer.ok) return failed<T>(message, await answer.text());
      const bytes = await answer.arrayBuffer();
      const size = new DataView(bytes).getUint32(0, true);
      const reply = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, size)));
      let place = 4 + size;
      reply.buffers = (reply.lengths as number[]).map((length) => {
        place += (8 - (place % 8)) % 8;
        const column = new DataView(bytes, place, length);
        place += length;
        return column;
      });
      return reply as Reply<T>;
    },
    cancel(kinds) {
      const ids = waiting.of(kinds);
      if (ids.length) void fetch(address("cancel"), { method: "POST", body: JSON.stringify(ids) }).catch(() => undefined);
    },
  };
}

export interface WidgetModel {
  send(content: unknown): void;
  on(event: string, callback: (...given: never[]) => void): void;
  off(event: string, callback: (...given: never[]) => void): void;
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
}

/** A session of a notebook. */
export function widgetSession(model: WidgetModel): Session & { close(): void } {
  type Heard = Reply<object>;
  const waiting = new Waiting();
  const answered = new Map<string, (reply: Heard) => void>();
  const heard = (content: Heard & { id: string }, buffers: DataView[]) => {
    const take = answered.get(content.id);
    answered.delete(content.id);
    waiting.end(content.id);
    take?.({ ...content, buffers: buffers ?? [] });
  };
  model.on("msg:custom", heard as (...given: never[]) => void);
  return {
    ask<T>(message: Message): Promise<Reply<T>> {
      const id = waiting.begin(message);
      return new Promise((resolve) => {
        answered.set(id, resolve as (reply: Heard) => void);
        model.send({ ...message, id });
      });
    },
    cancel(kinds) {
      const ids = waiting.of(kinds);
      if (ids.length) model.send({ kind: "cancel", ids });
    },
    close() {
      model.off("msg:custom", heard as (...given: never[]) => void);
    },
  };
}

function failed<T>(message: Message, error: string): Reply<T> {
  return { kind: message.kind, error, notes: [], ms: 0, buffers: [] } as unknown as Reply<T>;
}

/** A column of numbers, read where it lies if that is where such numbers may lie. */
export function column<A>(
  view: DataView, kind: { new (buffer: ArrayBuffer, offset: number, length: number): A; BYTES_PER_ELEMENT: number },
): A {
  const width = kind.BYTES_PER_ELEMENT;
  const here = view.byteOffset % width === 0;
  const bytes = here
    ? (view.buffer as ArrayBuffer)
    : (view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength) as ArrayBuffer);
  return new kind(bytes, here ? view.byteOffset : 0, view.byteLength / width);
}
