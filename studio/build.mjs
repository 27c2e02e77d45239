// One module and one stylesheet, beside the Python that serves them.
import { build } from "esbuild";
import { mkdir, stat, writeFile } from "node:fs/promises";

const into = new URL("../src/estero/studio/static/", import.meta.url).pathname;
const LIMIT = 1_000_000; // bytes in all

await mkdir(into, { recursive: true });
await build({
  entryPoints: { studio: "src/main.ts" },
  outdir: into,
  bundle: true,
  format: "esm",
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  banner: { js: "/* Estero studio; with CodeMirror (MIT), https://codemirror.net */" },
});
await build({
  entryPoints: { studio: "src/style.css" },
  outdir: into,
  bundle: true,
  minify: true,
  target: ["chrome110", "firefox115", "safari16"],
});
const sizes = await Promise.all(["studio.js", "studio.css"].map((name) => stat(into + name).then((s) => s.size)));
const total = sizes.reduce((a, b) => a + b, 0);
console.log(`studio: ${total.toLocaleString("en")} bytes`);
if (total > LIMIT) throw new Error(`the bundle may have ${LIMIT.toLocaleString("en")} bytes`);
await writeFile(into + ".built", "");
