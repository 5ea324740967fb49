/** One inversion as it arrives: its frames, its result, and the part of stage three that shows it. */

import { showTokens, toWords } from "./canvas.js";
import { element } from "./dom.js";

/** @param {number} share */
const percent = (share) => `${Math.round(100 * share)} %`;

const MASK = "▒▒▒";

export class Lane {
  /**
   * @param {string} label
   * @param {object} body the request
   */
  constructor(label, body) {
    this.label = label;
    this.body = body;
    /** @type {string} */
    this.strategy = /** @type {any} */ (body).strategy ?? label;
    /** @type {import("./types.js").Step[]} */
    this.frames = [];
    /** @type {import("./types.js").Start | null} */
    this.start = null;
    /** @type {import("./types.js").Result | null} */
    this.result = null;
    this.canvas = element("ol", { class: "canvas", "aria-label": `Tokens of ${label}` });
    this.note = element("p", { class: "note" });
    this.node = element("div", { class: "lane" }, element("h3", {}, label), this.canvas, this.note);
  }

  /**
   * @param {string} event of the server
   * @param {any} data
   */
  take(event, data) {
    if (event === "start") {
      this.start = data;
      this.expect(data.length ?? data.reference?.tokens.length ?? 8);
    }
    if (event === "step") this.add(data);
    if (event === "done") this.result = data;
  }

  /** @param {number} length how many tokens there will probably be */
  expect(length) {
    this.frames = [blank(length)];
  }

  /** @param {import("./types.js").Step} step */
  add(step) {
    if (this.frames.length === 1) this.expect(step.tokens.length);
    this.frames.push(step);
  }

  /**
   * @param {number} index of a frame
   * @returns {string} its text, with a block for each mask
   */
  textAt(index) {
    const frame = this.frames[Math.min(index, this.frames.length - 1)];
    if (!frame) return "…";
    const words = toWords(frame.tokens).map((pieces) => pieces.map(({ text, masked }) => (masked ? MASK : text)).join(""));
    return words.join(" ").replace(/ ([.,;:!?)])/g, "$1");
  }

  /** @param {number} index of a frame; the last one stays when another lane has more */
  show(index) {
    const frame = this.frames[Math.min(index, this.frames.length - 1)];
    if (!frame) return;
    showTokens(this.canvas, frame.tokens);
    this.note.textContent = describe(frame);
  }
}

/** @param {number} length */
function blank(length) {
  const tokens = Array.from({ length }, () => ({ text: "", joined: false, masked: true, changed: false, confidence: 0 }));
  return { pass: 0, mask_rate: 1, score: null, texts_embedded: 0, tokens };
}

/** @param {import("./types.js").Step} frame */
function describe(frame) {
  if (frame.texts_embedded) {
    return `Cosine ${frame.score?.toFixed(3) ?? "unknown"} after ${frame.texts_embedded.toLocaleString("en")} guesses embedded`;
  }
  if (!frame.pass) return "Before the first pass: nothing but masks";
  return frame.mask_rate ? `Pass ${frame.pass}: ${percent(frame.mask_rate)} still masked` : `Pass ${frame.pass}: all filled in`;
}
