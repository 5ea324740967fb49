/** Stage four: the verdict in a sentence, original and recovered text side by side, and the measures by name. */

import { compareWords } from "./diff.js";
import { element, find } from "./dom.js";

/** @typedef {import("./types.js").Result} Result */

const KINDS = { same: "leaked", moved: "leaked, elsewhere in the sentence", lost: "", between: "" };

/**
 * @param {HTMLElement} verdict
 * @param {HTMLElement} grid
 * @param {{label: string, result: Result}[]} lanes
 * @param {import("./types.js").Measure[]} known the measures that the server describes
 */
export function showResults(verdict, grid, lanes, known) {
  const compared = lanes.length > 1;
  const reference = lanes[0].result.reference;
  verdict.replaceChildren(
    ...lanes.map(({ label, result }) => element("span", {}, compared ? `${capital(label)}: ${judge(result)} ` : capital(judge(result)))),
  );
  // Both lanes are about one vector: what both warn of is said once.
  const warnings = new Set(lanes.flatMap(({ result }) => result.warnings));
  find("warnings", HTMLElement).replaceChildren(...[...warnings].map((warning) => element("li", {}, warning)));
  grid.dataset.lanes = String(lanes.length);
  grid.replaceChildren(
    ...(reference ? [original(reference, compared ? null : lanes[0].result)] : []),
    ...lanes.flatMap(({ label, result }) => [
      card(compared ? label : "Recovered", result.reference ? compareWords(result.reference.text, result.text)[1] : plain(result.text)),
      measures(result, known),
    ]),
  );
}

/**
 * @param {string} text
 * @returns {import("./diff.js").Piece[]}
 */
const plain = (text) => [{ text, kind: "between" }];

/**
 * @param {import("./types.js").Reference} reference
 * @param {Result | null} result what to mark the leaked words by
 */
function original({ text, cut }, result) {
  const note = cut ? "Only this much fits the model; the rest was left out." : "";
  return card("Original", result ? compareWords(text, result.text)[0] : plain(text), note);
}

/**
 * @param {Result} result
 * @returns {string} what happened, in a sentence
 */
function judge(result) {
  const from = `${result.statistics.dimension} numbers${result.encoder_calls ? ", with the encoder’s help" : ""}`;
  if (!result.reference) return `this is what ${from} say.`;
  if (result.measures?.exact_match) return `the whole sentence came back, word for word, from ${from}.`;
  const words = compareWords(result.reference.text, result.text)[0].filter((piece) => piece.kind !== "between");
  const leaked = words.filter((piece) => piece.kind !== "lost").length;
  return `${leaked || "none"} of ${words.length} words came back from ${from}.`;
}

/**
 * @param {string} title
 * @param {import("./diff.js").Piece[]} parts
 * @param {string} [note]
 */
function card(title, parts, note = "") {
  const text = element("p", { class: "text" });
  text.append(
    ...runs(parts).map(({ text, kind }) => {
      if (kind === "between") return text;
      return element(kind === "lost" ? "span" : "mark", { class: kind, title: KINDS[kind] }, text);
    }),
  );
  return element("div", { class: "card" }, element("h3", {}, title), text, ...(note ? [element("p", { class: "hint" }, note)] : []));
}

/**
 * Joins neighbours of one kind with what is between them: a phrase that leaked is one mark.
 *
 * @param {import("./diff.js").Piece[]} parts
 */
function runs(parts) {
  /** @type {import("./diff.js").Piece[]} */
  const joined = [];
  for (const part of parts) {
    const [before, last] = joined.slice(-2);
    if (last?.kind === "between" && before?.kind === part.kind) before.text += joined.pop()?.text + part.text;
    else joined.push({ ...part });
  }
  return joined;
}

/**
 * @param {Result} result
 * @param {import("./types.js").Measure[]} known
 */
function measures(result, known) {
  const values = { ...result.measures, ...(result.cosine === null ? {} : { cosine: result.cosine }) };
  /** @type {[string, string, string][]} */
  const figures = known
    .filter(({ name, hit }) => name in values && !hit) // a hit is in the verdict already
    .map(({ name, label, meaning, format }) => [label, format === "share" ? share(values[name]) : values[name].toFixed(3), meaning]);
  figures.push(["Passes", String(result.passes), "Passes of the model over the text"]);
  const guesses = result.encoder_calls + result.surrogate_calls;
  if (guesses) {
    figures.push(["Guesses", guesses.toLocaleString("en"), "Texts that were embedded to compare them with the vector"]);
  }
  figures.push(["Time", duration(result.milliseconds), "Computing time, without waiting in the queue"]);
  return element(
    "dl",
    { class: "measures" },
    ...figures.map(([name, value, meaning]) =>
      element("div", { title: meaning }, element("dt", {}, name), element("dd", {}, value)),
    ),
  );
}

/** @param {string} word */
const capital = (word) => word[0].toUpperCase() + word.slice(1);

/** @param {number} value */
const share = (value) => `${(100 * value).toFixed(0)} %`;

/** @param {number} milliseconds */
const duration = (milliseconds) =>
  milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
