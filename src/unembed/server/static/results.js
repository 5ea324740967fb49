/** What came back: the headline, the texts side by side, how far they can be trusted, and the measures with their meaning. */

import { compareWords } from "./diff.js";
import { element, find } from "./dom.js";

/** @typedef {import("./types.js").Result} Result */
/** @typedef {{label: string, result: Result}} Compared */

const KINDS = { same: "came back", moved: "came back, elsewhere in the sentence", near: "came back in another form", lost: "", between: "" };

const verdict = find("verdict", HTMLElement);
const baseline = find("baseline", HTMLElement);
const leaks = find("leaks", HTMLElement);
const reliability = find("reliability", HTMLElement);
const grid = find("results", HTMLElement);
const details = find("details", HTMLDetailsElement);

/**
 * @param {Compared[]} lanes one or two
 * @param {import("./types.js").Measure[]} known the measures that the server describes
 */
export function showResults(lanes, known) {
  const compared = lanes.length > 1;
  const [{ result }] = lanes;
  verdict.replaceChildren(
    ...lanes.map(({ label, result }) => element("span", {}, compared ? `${capital(label)}: ${judge(result)}` : capital(judge(result)))),
  );
  baseline.textContent = compared ? "" : describeBaseline(result);
  baseline.hidden = !baseline.textContent;
  showLeaks(lanes);
  showReliability(lanes);
  // Both lanes are about one vector: what both warn of is said once.
  list("warnings", lanes.flatMap(({ result }) => result.warnings));
  list("notices", [...(result.reference?.notices ?? []), ...(result.notices ?? [])]);
  grid.dataset.lanes = String(lanes.length);
  grid.replaceChildren(
    ...(result.reference ? [original(result.reference, compared ? null : result)] : []),
    ...lanes.map(({ label, result }) =>
      card(compared ? label : "Recovered", result.reference ? compareWords(result.reference.text, result.text)[1] : plain(result.text)),
    ),
  );
  details.hidden = false;
  find("figures", HTMLElement).replaceChildren(...lanes.map(({ label, result }) => measures(compared ? label : "", result, known)));
}

/**
 * While it runs: the original, and the text as far as it is, in the place where the result will stand.
 *
 * @param {import("./types.js").Reference | null} reference
 * @param {{label: string, text: string}[]} lanes
 */
export function showUnfinished(reference, lanes) {
  grid.dataset.lanes = String(lanes.length);
  const cards = lanes.map(({ label, text }) => card(lanes.length > 1 ? label : "Recovered", plain(text)));
  grid.replaceChildren(...(reference ? [original(reference, null)] : []), ...cards);
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
function original({ text }, result) {
  if (!result) return card("Original", plain(text));
  const near = new Set(result.headline?.words.filter(({ fate }) => fate === "near").map(({ text }) => text));
  const pieces = compareWords(text, result.text)[0].map((piece) =>
    piece.kind === "lost" && near.has(piece.text) ? { ...piece, kind: /** @type {const} */ ("near") } : piece,
  );
  return card("Original", pieces);
}

/**
 * @param {Result} result
 * @returns {string} what happened, in a sentence
 */
function judge(result) {
  const { headline, reliability, statistics } = result;
  const numbers = `${statistics.dimension} numbers`;
  if (!headline) {
    return {
      close: `this is close to what the ${numbers} say.`,
      rough: `this is roughly what the ${numbers} say.`,
      noise: `nothing that can be read is in these ${numbers}.`,
      unknown: `this is what the ${numbers} say, as far as this model can tell.`,
    }[reliability.level];
  }
  if (result.measures?.exact_match) return `the whole sentence came back, word for word, from ${numbers}.`;
  const { words, same, near } = headline;
  if (!words.length) return "there are no words in it to compare.";
  const telling = `${words.length} ${words.length === 1 ? "content word" : "content words"}`;
  if (same === words.length) return `${words.length === 1 ? "the only content word" : `all ${telling}`} came back from ${numbers}.`;
  const nearly = near ? `${same ? `, ${near} more` : ` as ${words.length === 1 ? "it was" : "they were"}, ${near}`} in another form` : "";
  return `${same || "none"} of ${telling} came back${nearly}${nearly ? "." : ` from ${numbers}.`}`;
}

/** @param {Result} result */
function describeBaseline({ headline }) {
  if (!headline?.words.length) return "";
  const { words, without_vector: { found, text } } = headline;
  return `Without the vector, the same model gets ${found || "none"} of the ${words.length}: it writes “${text}”`;
}

/** @param {Compared[]} lanes */
function showLeaks(lanes) {
  /** @type {Map<string, Set<string>>} */
  const found = new Map();
  for (const { name, text } of lanes.flatMap(({ result }) => result.headline?.leaks ?? [])) {
    found.set(name, (found.get(name) ?? new Set()).add(text));
  }
  leaks.hidden = !found.size;
  leaks.replaceChildren(
    ...[...found].map(([name, texts]) => element("li", {}, `${capital(name)} leaked: `, element("strong", {}, [...texts].join(", ")))),
  );
}

/** @param {Compared[]} lanes */
function showReliability(lanes) {
  reliability.hidden = false;
  reliability.replaceChildren(
    ...lanes.flatMap(({ label, result: { reliability } }) => [
      element("span", { class: `level ${reliability.level}` }, capital(lanes.length > 1 ? `${label}: ${reliability.level}` : reliability.level)),
      element("span", {}, `${reliability.meaning} ${reliability.reason} `),
    ]),
  );
}

/**
 * @param {string} id
 * @param {string[]} sentences
 */
function list(id, sentences) {
  find(id, HTMLElement).replaceChildren(...[...new Set(sentences)].map((sentence) => element("li", {}, sentence)));
}

/**
 * @param {string} title
 * @param {import("./diff.js").Piece[]} parts
 */
function card(title, parts) {
  const text = element("p", { class: "text" });
  text.append(
    ...runs(parts).map(({ text, kind }) => {
      if (kind === "between") return text;
      return element(kind === "lost" ? "span" : "mark", { class: kind, title: KINDS[kind] }, text);
    }),
  );
  return element("div", { class: "card" }, element("h3", {}, title), text);
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
 * @param {string} label
 * @param {Result} result
 * @param {import("./types.js").Measure[]} known
 */
function measures(label, result, known) {
  /** @type {Record<string, number>} */
  const values = { ...result.measures, ...(result.cosine === null ? {} : { cosine: result.cosine }) };
  /** @type {[string, string, string][]} */
  const figures = known
    .filter(({ name }) => name in values)
    .map(({ name, label, meaning, format, hit }) => [label, hit ? (values[name] ? "yes" : "no") : show(values[name], format), meaning]);
  if (result.headline) {
    const { words, same, near } = result.headline;
    figures.unshift(["Content words", `${same} + ${near} of ${words.length}`, "Came back as they are, and in another form. Words such as “the” do not count."]);
  }
  figures.push(["Passes", String(result.passes), "Passes of the model over the text."]);
  const guesses = result.encoder_calls + result.surrogate_calls;
  if (guesses) figures.push(["Guesses", guesses.toLocaleString("en"), "Texts that were embedded to compare them with the vector."]);
  figures.push(["Time", duration(result.milliseconds), "Computing time, without waiting in the queue."]);
  const rows = figures.map(([name, value, meaning]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value), element("dd", { class: "meaning" }, meaning)),
  );
  return element("div", { class: "table" }, ...(label ? [element("h3", {}, label)] : []), element("dl", { class: "measures" }, ...rows));
}

/**
 * @param {number} value
 * @param {string} format
 */
const show = (value, format) => (format === "share" ? `${(100 * value).toFixed(0)} %` : value.toFixed(3));

/** @param {string} word */
const capital = (word) => word[0].toUpperCase() + word.slice(1);

/** @param {number} milliseconds */
export const duration = (milliseconds) =>
  milliseconds < 1000 ? `${Math.round(milliseconds)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
