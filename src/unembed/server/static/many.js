/** Many vectors as a table: the words of all of them first, then their texts, batch by batch. */

import { download, toCsv } from "./csv.js";
import { element, find } from "./dom.js";

/** @typedef {{number: number, words: string, text: string, level: string, reason: string}} Entry */

const MOST = 10_000;
const PER_PAGE = 50;
const LEVELS = ["close", "rough", "noise", "unknown", ""];

const section = find("many", HTMLElement);
const state = find("many-state", HTMLElement);
const body = find("many-rows", HTMLElement);
const filter = find("many-filter", HTMLInputElement);
const sort = find("many-sort", HTMLSelectElement);
const stop = find("many-stop", HTMLButtonElement);

export class Many {
  /** @type {Entry[]} */
  entries = [];
  page = 0;
  /** @type {AbortController | null} */
  running = null;
  /** @type {number | undefined} */
  drawing;

  /**
   * @param {import("./api.js").Api} api
   * @param {{onOpen: (number: number) => void, onProblem: (error: unknown) => void}} hooks
   */
  constructor(api, hooks) {
    this.api = api;
    this.hooks = hooks;
    for (const [node, event] of /** @type {const} */ ([[filter, "input"], [sort, "change"]])) {
      node.addEventListener(event, () => this.turn(0));
    }
    find("many-before", HTMLButtonElement).addEventListener("click", () => this.turn(this.page - 1));
    find("many-after", HTMLButtonElement).addEventListener("click", () => this.turn(this.page + 1));
    find("many-download", HTMLButtonElement).addEventListener("click", () => this.save());
    stop.addEventListener("click", () => this.cancel());
  }

  /**
   * @param {import("./vectors.js").Row[]} rows none: the table goes away
   * @param {string} name
   * @param {object} options model, defence and strategy of every request
   * @param {number} together rows of one request
   */
  async show(rows, name, options, together) {
    this.cancel();
    section.hidden = !rows.length;
    state.textContent = "";
    this.entries = [];
    if (!rows.length) return;
    const all = rows.length;
    const taken = rows.slice(0, MOST);
    this.name = name;
    this.entries = taken.map((_, index) => ({ number: index + 1, words: "", text: "", level: "", reason: "" }));
    filter.value = "";
    sort.value = "row";
    this.turn(0);
    const work = (this.running = new AbortController());
    const cut = all > MOST ? ` The file has ${all.toLocaleString("en")}; the first ${MOST.toLocaleString("en")} are read.` : "";
    stop.hidden = false;
    try {
      await this.fill("Words", "api/words", taken, withoutStrategy(options), together, work.signal, cut, (entry, { words, warnings }) => {
        entry.words = words.join(" ");
        if (warnings.length) [entry.level, entry.reason] = ["noise", warnings[0]];
      });
      await this.fill("Texts", "api/invert/batch", taken, options, together, work.signal, cut, (entry, result) => {
        entry.text = result.text;
        entry.level = result.reliability.level;
        entry.reason = result.reliability.reason;
      });
      state.textContent = `${taken.length.toLocaleString("en")} vectors, all read.${cut}`;
    } catch (error) {
      if (work.signal.aborted) return;
      state.textContent = "Stopped.";
      this.hooks.onProblem(error);
    } finally {
      if (this.running === work) {
        this.running = null;
        stop.hidden = true;
      }
    }
  }

  /**
   * @param {string} what
   * @param {string} path
   * @param {import("./vectors.js").Row[]} rows
   * @param {object} options
   * @param {number} together
   * @param {AbortSignal} signal
   * @param {string} more
   * @param {(entry: Entry, result: any) => void} take
   */
  async fill(what, path, rows, options, together, signal, more, take) {
    const began = performance.now();
    for (let first = 0; first < rows.length; first += together) {
      const vectors = rows.slice(first, first + together).map((row) => Array.from(row, (number) => Number(number.toPrecision(6))));
      const { results } = await this.api.patiently(path, { ...options, vectors }, signal);
      results.forEach((/** @type {any} */ result, /** @type {number} */ index) => take(this.entries[first + index], result));
      const done = Math.min(first + together, rows.length);
      const left = ((performance.now() - began) / done) * (rows.length - done);
      state.textContent = `${what}: ${done.toLocaleString("en")} of ${rows.length.toLocaleString("en")}${describeLeft(left)}.${more}`;
      this.drawSoon();
    }
  }

  /** @param {boolean} wanted whether vectors are given, and not a sentence */
  setVisible(wanted) {
    section.hidden = !wanted || !this.entries.length;
  }

  cancel() {
    if (this.running && state.textContent) state.textContent = `Stopped. ${state.textContent}`;
    this.running?.abort();
    this.running = null;
    stop.hidden = true;
  }

  /** @returns {Entry[]} what the filter leaves, as it is sorted */
  get chosen() {
    const wanted = filter.value.trim().toLowerCase();
    const left = wanted ? this.entries.filter(({ words, text }) => `${words} ${text}`.toLowerCase().includes(wanted)) : [...this.entries];
    if (sort.value === "reliability") left.sort((a, b) => LEVELS.indexOf(a.level) - LEVELS.indexOf(b.level));
    if (sort.value === "text") left.sort((a, b) => Number(!a.text) - Number(!b.text) || a.text.localeCompare(b.text));
    return left;
  }

  /** @param {number} page */
  turn(page) {
    this.page = page;
    this.draw();
  }

  /** Batches may come faster than anybody reads. */
  drawSoon() {
    this.drawing ??= requestAnimationFrame(() => {
      this.drawing = undefined;
      this.draw();
    });
  }

  draw() {
    const chosen = this.chosen;
    const last = Math.max(0, Math.ceil(chosen.length / PER_PAGE) - 1);
    this.page = Math.max(0, Math.min(this.page, last));
    const first = this.page * PER_PAGE;
    const shown = chosen.slice(first, first + PER_PAGE);
    body.replaceChildren(...shown.map((entry) => this.line(entry)));
    find("many-page", HTMLElement).textContent = chosen.length
      ? `${(first + 1).toLocaleString("en")} to ${(first + shown.length).toLocaleString("en")} of ${chosen.length.toLocaleString("en")}`
      : "No vector has it.";
    find("many-before", HTMLButtonElement).disabled = this.page === 0;
    find("many-after", HTMLButtonElement).disabled = this.page === last;
  }

  /** @param {Entry} entry */
  line({ number, words, text, level, reason }) {
    const open = element("button", { type: "button", class: "link", title: "Read this one above" }, String(number));
    open.addEventListener("click", () => this.hooks.onOpen(number));
    const trust = level ? [element("span", { class: `level ${level}`, title: reason }, level)] : [];
    return element("tr", {}, element("td", {}, open), element("td", {}, words), element("td", {}, text), element("td", {}, ...trust));
  }

  save() {
    const rows = this.chosen.map(({ number, words, text, level, reason }) => [number, words, text, level, reason]);
    download(`${this.name?.replace(/\.\w+$/, "") || "vectors"}-read.csv`, toCsv([["row", "words", "text", "reliability", "reason"], ...rows]));
  }
}

/** @param {object} options */
function withoutStrategy(options) {
  const { model, defence } = /** @type {any} */ (options);
  return { model, defence };
}

/** @param {number} milliseconds */
function describeLeft(milliseconds) {
  const seconds = Math.round(milliseconds / 1000);
  if (seconds < 2) return "";
  return seconds < 100 ? `, about ${seconds} s left` : `, about ${Math.round(seconds / 60)} min left`;
}
