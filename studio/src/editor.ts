// The editor: CodeMirror with the words of the language, mistakes as the checker has them, and completion.

import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { Mistake, Session } from "./messages";

interface Options { words: Record<string, string[]>; session: Session; changed: (text: string) => void; run: () => void }

const STYLE = HighlightStyle.define([
  { tag: tags.keyword, class: "tok-keyword" },
  { tag: tags.modifier, class: "tok-modifier" },
  { tag: tags.atom, class: "tok-constant" },
  { tag: tags.unit, class: "tok-unit" },
  { tag: tags.function(tags.name), class: "tok-function" },
  { tag: tags.string, class: "tok-string" },
  { tag: tags.number, class: "tok-number" },
  { tag: tags.comment, class: "tok-comment" },
  { tag: tags.operator, class: "tok-operator" },
  { tag: tags.special(tags.name), class: "tok-parameter" },
]);

/** The language by its words: no grammar here, Python has it. */
function language(words: Record<string, string[]>) {
  const kinds = new Map<string, string>();
  for (const [kind, style] of [["function", "function"], ["unit", "unit"], ["modifier", "modifier"], ["constant", "constant"], ["keyword", "keyword"]] as const)
    for (const word of words[kind] ?? []) kinds.set(word.toUpperCase(), style);
  return StreamLanguage.define<{ comment: boolean; behind: string }>({
    name: "ceql",
    startState: () => ({ comment: false, behind: "" }),
    token(stream, state) {
      if (state.comment) {
        if (stream.skipTo("*/")) { stream.match("*/"); state.comment = false; } else stream.skipToEnd();
        return "comment";
      }
      if (stream.eatSpace()) return null;
      const behind = state.behind;
      state.behind = "";
      if (stream.match("--")) { stream.skipToEnd(); return "comment"; }
      if (stream.match("/*")) { state.comment = true; return "comment"; }
      if (stream.match(/^'(?:[^']|'')*'?/)) return "string";
      if (stream.match(/^"(?:[^"]|"")*"?|^`(?:[^`]|``)*`?/)) return "name";
      if (stream.match(/^\$\w+/)) return "parameter";
      if (stream.match(/^\d+(\.\d+)?([eE][+-]?\d+)?/)) { state.behind = "number"; return "number"; }
      const word = stream.match(/^[^\W\d]\w*/u) as RegExpMatchArray | null;
      if (word) {
        const kind = kinds.get(word[0].toUpperCase());
        if (behind === ".") return "name";
        if (kind === "unit" && behind !== "number") return "name";
        if (kind === "unit") state.behind = "number";
        if (kind === "function") return stream.match(/^\s*\(/, false) ? "function" : "name";
        return kind ?? "name";
      }
      const sign = stream.next();
      state.behind = sign === "." ? "." : "";
      return "operator";
    },
    tokenTable: {
      keyword: tags.keyword, modifier: tags.modifier, constant: tags.atom, unit: tags.unit,
      function: tags.function(tags.name), parameter: tags.special(tags.name), name: tags.name,
    },
    languageData: { commentTokens: { line: "--", block: { open: "/*", close: "*/" } }, closeBrackets: { brackets: ["(", "[", "{", "'", '"'] } },
  });
}

export class Editor {
  readonly view: EditorView;

  constructor(parent: HTMLElement, text: string, { words, session, changed, run }: Options) {
    const complete = async (context: CompletionContext): Promise<CompletionResult | null> => {
      const word = context.matchBefore(/[\w$]+/);
      const behind = context.state.sliceDoc(Math.max(0, context.pos - 1), context.pos);
      if (!context.explicit && !word && !/[.[(]/.test(behind)) return null;
      const reply = await session.ask<{ from: number; options: { label: string; type: string; detail: string }[] }>({
        kind: "complete", text: context.state.doc.toString(), place: context.pos,
      });
      if (reply.error || context.aborted) return null;
      const kinds: Record<string, string> = { attribute: "property", label: "variable", type: "class", unit: "constant" };
      const options = reply.options.map((option, place) => ({
        label: option.label, detail: option.detail, type: kinds[option.type] ?? option.type, boost: -place / 10,
      }));
      return { from: reply.from, options, validFor: /^[\w$]*$/ };
    };
    this.view = new EditorView({
      parent,
      state: EditorState.create({
        doc: text,
        extensions: [
          lineNumbers(), highlightSpecialChars(), history(), drawSelection(), highlightActiveLine(),
          bracketMatching(), closeBrackets(), lintGutter(), language(words), syntaxHighlighting(STYLE),
          autocompletion({ override: [complete], icons: false, activateOnTypingDelay: 80 }),
          EditorState.tabSize.of(2), EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "Query in CEQL", spellcheck: "false" }),
          keymap.of([
            { key: "Mod-Enter", run: () => (run(), true) },
            { key: "Ctrl-Space", run: startCompletion },
            ...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap,
          ]),
          EditorView.updateListener.of((update) => { if (update.docChanged) changed(this.text); }),
        ],
      }),
    });
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  set text(text: string) {
    if (text !== this.text) this.view.dispatch({ changes: { from: 0, to: this.view.state.doc.length, insert: text } });
  }

  /** Underlines what is wrong; what mends it is a click away. */
  show(mistakes: Mistake[]): void {
    const end = this.view.state.doc.length;
    const diagnostics: Diagnostic[] = mistakes.map((mistake) => {
      const from = Math.min(mistake.from, end);
      return {
        from, to: Math.min(Math.max(mistake.to, from), end), severity: "error",
        message: mistake.hint ? `${mistake.message}\n${mistake.hint}` : mistake.message,
        actions: mistake.fixes.map((fix) => ({
          name: fix.insert ? `Write ${fix.insert}` : "Leave it out", apply: () => this.mend(fix),
        })),
      };
    });
    this.view.dispatch(setDiagnostics(this.view.state, diagnostics));
  }

  mend(change: { from: number; to: number; insert: string }): void {
    this.view.dispatch({ changes: change, selection: { anchor: change.from + change.insert.length }, scrollIntoView: true });
    this.view.focus();
  }
}
