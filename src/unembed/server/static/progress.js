/** How a search is doing: its round, the cosine as a small curve, the time left. Knows no server. */

import { drawing, find } from "./dom.js";

const panel = find("progress", HTMLElement);
const note = find("progress-note", HTMLElement);
const curve = /** @type {SVGElement} */ (/** @type {unknown} */ (document.getElementById("climb")));
const HEIGHT = 24;

export class Progress {
  /** @param {number} rounds that the search may take */
  constructor(rounds) {
    this.rounds = rounds;
    /** @type {number[]} */
    this.cosines = [];
    this.began = performance.now();
  }

  /** @param {import("./types.js").Step} step */
  add(step) {
    if (!step.texts_embedded || step.score === null) return;
    this.cosines.push(step.score);
    panel.hidden = false;
    const seconds = (performance.now() - this.began) / 1000;
    const done = this.cosines.length;
    // The first step comes before any round: it is the blind start.
    const left = done > 1 ? Math.ceil((seconds / done) * Math.max(0, this.rounds + 1 - done)) : null;
    const wait = left === null ? "" : `, at most ${left} s left`;
    note.textContent = `Round ${done - 1} of ${this.rounds}: cosine ${step.score.toFixed(3)}${wait}`;
    this.draw();
  }

  draw() {
    const low = Math.min(...this.cosines, 0.5);
    const x = (/** @type {number} */ index) => ((100 * index) / Math.max(this.rounds, this.cosines.length - 1)).toFixed(2);
    const y = (/** @type {number} */ cosine) => (HEIGHT - 1 - ((HEIGHT - 2) * (cosine - low)) / (1 - low)).toFixed(2);
    const path = this.cosines.map((cosine, index) => `${index ? "L" : "M"}${x(index)} ${y(cosine)}`).join("");
    curve.replaceChildren(drawing("path", { class: "goal", d: "M0 1H100" }), drawing("path", { class: "climb", d: path }));
  }
}

export function hideProgress() {
  panel.hidden = true;
}

/** @param {() => void} keep */
export function onKeep(keep) {
  find("keep", HTMLButtonElement).addEventListener("click", keep);
}
