/** What is given: the sentence, the dice, pasted or dropped vectors. Says what it is; knows nothing of inversion. */

import { find } from "./dom.js";
import { Problem } from "./problem.js";
import { readFile, readText } from "./vectors.js";

export class Input {
  /**
   * @param {{onTyping: () => void, onGiven: () => void, onProblem: (error: unknown) => void,
   *   onRows: (rows: import("./vectors.js").Row[], name: string) => void}} hooks `onRows`: there are several vectors, or no more
   */
  constructor(hooks) {
    this.hooks = hooks;
    this.text = find("text", HTMLTextAreaElement);
    this.vector = find("vector", HTMLTextAreaElement);
    this.note = find("vector-note", HTMLElement);
    this.row = find("row", HTMLInputElement);
    /** @type {import("./types.js").Example[]} */
    this.examples = [];
    /** @type {import("./vectors.js").Row[]} rows of a file or of pasted text; the text field shows the chosen one */
    this.rows = [];
    /** @type {number | undefined} numbers of a vector of the chosen model */
    this.dimension = undefined;

    this.text.addEventListener("input", () => hooks.onTyping());
    this.vector.addEventListener("input", () => this.forgetFile());
    this.row.addEventListener("change", () => this.chooseRow());
    for (const difficulty of /** @type {const} */ (["easy", "hard"])) {
      find(`roll-${difficulty}`, HTMLButtonElement).addEventListener("click", () => this.roll(difficulty));
    }
    const file = find("file", HTMLInputElement);
    file.addEventListener("change", () => file.files?.[0] && this.open(file.files[0]));
    this.acceptDrops();
  }

  /** @param {"text" | "vector"} mode */
  setMode(mode) {
    this.mode = mode;
    for (const id of ["sentence", "dice", "about-sentence"]) find(id, HTMLElement).hidden = mode !== "text";
    for (const id of ["numbers", "about-vector"]) find(id, HTMLElement).hidden = mode !== "vector";
  }

  /** @returns {import("./settings.js").Given} */
  read() {
    if (this.mode === "vector") {
      const rows = readText(this.vector.value, this.dimension);
      if (rows.length > 1) this.take(rows, "pasted");
      return { vector: Array.from(rows[0]) };
    }
    const text = this.text.value.trim();
    if (!text) throw new Problem("There is no sentence yet.", "Type one, or roll the dice.");
    return { text };
  }

  /** Which of the examples the sentence is; -1 when somebody typed it. */
  get example() {
    return this.examples.findIndex((example) => example.text === this.text.value.trim());
  }

  /** @param {"easy" | "hard"} difficulty */
  roll(difficulty) {
    const others = this.examples.filter((example) => example.difficulty === difficulty && example.text !== this.text.value);
    if (!others.length) return;
    this.text.value = others[Math.floor(Math.random() * others.length)].text;
    this.hooks.onGiven();
  }

  forgetFile() {
    if (this.rows.length > 1) this.hooks.onRows([], "");
    this.rows = [];
    find("row-choice", HTMLElement).hidden = true;
    this.note.textContent = "";
  }

  /** @param {File} file */
  async open(file) {
    this.forgetFile();
    this.vector.value = "";
    this.note.textContent = `Reading ${file.name}…`;
    try {
      this.take(await readFile(file, this.dimension), file.name);
    } catch (error) {
      this.note.textContent = "";
      this.hooks.onProblem(error);
      return;
    }
    this.hooks.onGiven();
  }

  /**
   * @param {import("./vectors.js").Row[]} rows
   * @param {string} name
   */
  take(rows, name) {
    this.rows = rows;
    this.note.textContent = name;
    this.row.value = "1";
    this.row.max = String(rows.length);
    find("row-count", HTMLElement).textContent = rows.length.toLocaleString("en");
    find("row-choice", HTMLElement).hidden = rows.length === 1;
    this.showRow();
    if (rows.length > 1) this.hooks.onRows(rows, name);
  }

  /** @param {number} [number] counted from 1 */
  chooseRow(number = Number(this.row.value) || 1) {
    this.row.value = String(Math.max(1, Math.min(number, this.rows.length)));
    this.showRow();
    this.hooks.onGiven();
  }

  showRow() {
    const row = this.rows[Number(this.row.value) - 1];
    this.vector.value = JSON.stringify(Array.from(row, (number) => Number(number.toPrecision(7))));
  }

  acceptDrops() {
    const field = find("field", HTMLElement);
    const mode = /** @type {HTMLInputElement} */ (document.querySelector("input[name=mode][value=vector]"));
    // Dropped text goes where it is dropped, as everywhere.
    const hasFile = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files");
    document.addEventListener("dragover", (event) => {
      if (!hasFile(event)) return;
      event.preventDefault();
      field.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) field.classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      field.classList.remove("dropping");
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      event.preventDefault();
      mode.checked = true;
      this.setMode("vector");
      this.open(file);
    });
  }
}
