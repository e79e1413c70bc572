// Reads pictures by the programs that draw them: read.mjs FOLDER, with the folder of scripts/diagrams. Standard input
// and output are JSON.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const resolve = createRequire(join(process.argv[2], "x.js")).resolve;
const load = (name) => import(pathToFileURL(resolve(name)));
const { JSDOM } = await load("jsdom");
globalThis.window = new JSDOM("<!doctype html><body></body>").window;
globalThis.document = window.document;
const { default: mermaid } = await import(pathToFileURL(join(process.argv[2], "node_modules/mermaid/dist/mermaid.core.mjs")));
const { Graphviz } = await load("@hpcc-js/wasm-graphviz");
const graphviz = await Graphviz.load();

const readers = {
  dot(text) {
    const drawn = JSON.parse(graphviz.layout(text, "json", "dot"));
    return { nodes: (drawn.objects ?? []).map((n) => n.label), edges: (drawn.edges ?? []).length };
  },
  async mermaid(text) {
    await mermaid.parse(text);
    const diagram = await mermaid.mermaidAPI.getDiagramFromText(text);
    // the text between ﬂ and ß is a character by its number, which Mermaid turns into text when it draws
    const label = (s) => s.replace(/ﬂ°°(\d+)¶ß/g, (_, n) => String.fromCodePoint(n));
    return { nodes: [...diagram.db.getVertices().values()].map((n) => label(n.text)), edges: diagram.db.getEdges().length };
  },
};
const answers = [];
for (const { format, text } of JSON.parse(readFileSync(0, "utf8"))) {
  try {
    answers.push(await readers[format](text));
  } catch (e) {
    answers.push({ error: String(e.message ?? e) });
  }
}
process.stdout.write(JSON.stringify(answers));
process.exit(0);
