/** Draws the vector: of a run, or while somebody types. Remembers what the vector was before its defence. */

import { Problem } from "./problem.js";
import { defenceOf } from "./settings.js";
import { showVector } from "./vector-view.js";

const TYPING_PAUSE = 250;

export class Preview {
  /** @type {AbortController | null} */
  running = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  pause;
  /** @type {{text: string, model: string, vector: Promise<number[] | null>}} */
  plain = { text: "", model: "", vector: Promise.resolve(null) };

  /** @param {import("./api.js").Api} api */
  constructor(api) {
    this.api = api;
  }

  /**
   * @param {{vector: number[], statistics: import("./types.js").Statistics}} answer
   * @param {import("./settings.js").Settings} settings
   * @param {import("./settings.js").Given} given
   * @param {AbortSignal} signal
   */
  async draw({ vector, statistics }, settings, given, signal) {
    showVector(vector, statistics, null);
    if (!defenceOf(settings)) return;
    const before = "vector" in given ? given.vector : await this.vectorOf(given.text, settings.model);
    if (!signal.aborted) showVector(vector, statistics, before);
  }

  /**
   * Redraws it soon, unless more is typed until then. Its errors can wait for the run.
   *
   * @param {() => [import("./settings.js").Settings, import("./settings.js").Given]} read
   */
  soon(read) {
    clearTimeout(this.pause);
    this.pause = setTimeout(() => this.redraw(read), TYPING_PAUSE);
  }

  cancel() {
    clearTimeout(this.pause);
    this.running?.abort();
  }

  /** @param {() => [import("./settings.js").Settings, import("./settings.js").Given]} read */
  async redraw(read) {
    this.running?.abort();
    const { signal } = (this.running = new AbortController());
    try {
      const [settings, given] = read();
      if (!("text" in given)) return;
      const body = { ...given, model: settings.model, defence: defenceOf(settings) };
      await this.draw(await this.api.encode(body, signal), settings, given, signal);
    } catch (error) {
      if (!(error instanceof Problem) && !signal.aborted) throw error;
    }
  }

  /**
   * The vector of a sentence without any defence, remembered as long as the sentence stays.
   *
   * @param {string} text
   * @param {string} model
   * @returns {Promise<number[] | null>} null when the server does not give it: it is only drawn behind the other vector
   */
  vectorOf(text, model) {
    if (this.plain.text !== text || this.plain.model !== model) {
      const vector = this.api.encode({ text, model }).then(
        (answer) => answer.vector,
        () => null,
      );
      this.plain = { text, model, vector };
    }
    return this.plain.vector;
  }
}
