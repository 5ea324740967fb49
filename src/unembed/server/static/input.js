/** Stage one: the sentence, the dice, the pasted or dropped vector. Says what is given; knows nothing of inversion. */

import { find } from "./dom.js";
import { Problem } from "./problem.js";
import { readFile, readText } from "./vectors.js";

export class Input {
  /** @param {{onTyping: () => void, onGiven: () => void, onProblem: (error: unknown) => void}} hooks */
  constructor(hooks) {
    this.hooks = hooks;
    this.text = find("text", HTMLTextAreaElement);
    this.vector = find("vector", HTMLTextAreaElement);
    this.note = find("vector-note", HTMLElement);
    this.row = find("row", HTMLInputElement);
    /** @type {import("./types.js").Example[]} */
    this.examples = [];
    /** @type {number[][]} rows of a file; the text field shows the chosen one */
    this.rows = [];

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
    if (this.mode === "vector") return { vector: readText(this.vector.value)[0] };
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
    this.rows = [];
    find("row-choice", HTMLElement).hidden = true;
    this.note.textContent = "";
  }

  /** @param {File} file */
  async open(file) {
    this.forgetFile();
    this.vector.value = "";
    try {
      this.rows = await readFile(file);
    } catch (error) {
      this.hooks.onProblem(error);
      return;
    }
    this.note.textContent = file.name;
    this.row.value = "1";
    this.row.max = String(this.rows.length);
    find("row-count", HTMLElement).textContent = this.rows.length.toLocaleString("en");
    find("row-choice", HTMLElement).hidden = this.rows.length === 1;
    this.chooseRow();
  }

  chooseRow() {
    const row = this.rows[Math.max(1, Math.min(Number(this.row.value) || 1, this.rows.length)) - 1];
    this.vector.value = JSON.stringify(row.map((number) => Number(number.toPrecision(7))));
    this.hooks.onGiven();
  }

  acceptDrops() {
    const field = find("field", HTMLElement);
    const mode = /** @type {HTMLInputElement} */ (document.querySelector("input[name=mode][value=vector]"));
    document.addEventListener("dragover", (event) => {
      event.preventDefault();
      field.classList.add("dropping");
    });
    document.addEventListener("dragleave", (event) => {
      if (!event.relatedTarget) field.classList.remove("dropping");
    });
    document.addEventListener("drop", (event) => {
      event.preventDefault();
      field.classList.remove("dropping");
      const file = event.dataTransfer?.files[0];
      if (!file) return;
      mode.checked = true;
      this.setMode("vector");
      this.open(file);
    });
  }
}
