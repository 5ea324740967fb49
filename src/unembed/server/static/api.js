/** Talks to the server: JSON in, JSON or events out, every failure as a Problem. Knows nothing of the page. */

import { readEvents } from "./events.js";
import { Problem } from "./problem.js";

const KEY = "unembed-key";
// How often a request is sent that the server is too busy for.
const PATIENCE = 10;

export class Api {
  /** @param {(refused: boolean) => Promise<string | null>} askForKey asked when the server wants a key; null gives up */
  constructor(askForKey) {
    this.askForKey = askForKey;
    /** @type {Promise<string | null> | null} */
    this.asking = null;
  }

  /** @returns {Promise<import("./types.js").Catalogue>} */
  models() {
    return this.json("api/models");
  }

  /** @returns {Promise<{examples: import("./types.js").Example[]}>} */
  examples() {
    return this.json("api/examples");
  }

  /**
   * @param {object} body
   * @param {AbortSignal} [signal]
   * @returns {Promise<{vector: number[], statistics: import("./types.js").Statistics, cut: boolean}>}
   */
  encode(body, signal) {
    return this.json("api/encode", body, signal);
  }

  /**
   * The events of one inversion, up to and including `done`; an `error` event is thrown.
   *
   * @param {object} body
   * @param {AbortSignal} signal
   */
  async *invert(body, signal) {
    const response = await this.fetch("api/invert/stream", body, signal);
    let ended = false;
    try {
      for await (const { event, data } of readEvents(/** @type {ReadableStream} */ (response.body))) {
        if (event === "error") throw new Problem(data.message, data.remedy, data.status);
        ended = event === "done";
        yield { event, data };
      }
    } catch (error) {
      throw error instanceof TypeError && !signal.aborted ? unreachable() : error;
    }
    if (!ended) throw unreachable();
  }

  /**
   * Lets a search end with its best text; its stream says the rest.
   *
   * @param {string} id
   */
  stop(id) {
    return this.json("api/invert/stop", { id });
  }

  /**
   * As `json`, and waits as long as the server asks when it is busy.
   *
   * @param {string} path
   * @param {object} body
   * @param {AbortSignal} signal
   * @returns {Promise<any>}
   */
  async patiently(path, body, signal) {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.json(path, body, signal);
      } catch (error) {
        if (!(error instanceof Problem) || error.status !== 503 || attempt === PATIENCE) throw error;
        await new Promise((resolve) => setTimeout(resolve, 1000 * attempt));
      }
    }
  }

  /** Whether the server answers at all. */
  async alive() {
    return fetch("health").then(
      (response) => response.ok,
      () => false,
    );
  }

  /**
   * @param {string} path
   * @param {object} [body]
   * @param {AbortSignal} [signal]
   */
  async json(path, body, signal) {
    return (await this.fetch(path, body, signal)).json();
  }

  /**
   * @param {string} path
   * @param {object} [body] sent as JSON; without one the request is a GET
   * @param {AbortSignal} [signal]
   * @returns {Promise<Response>}
   */
  async fetch(path, body, signal) {
    const key = sessionStorage.getItem(KEY);
    /** @type {Record<string, string>} */
    const headers = key ? { "X-API-Key": key } : {};
    if (body) headers["Content-Type"] = "application/json";
    let response;
    try {
      response = await fetch(path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal });
    } catch (error) {
      throw signal?.aborted ? error : unreachable();
    }
    if (response.ok) return response;
    if (response.status === 401 && (await this.newKey(key))) return this.fetch(path, body, signal);
    throw await explain(response);
  }

  /**
   * Asks once, however many requests were refused meanwhile.
   *
   * @param {string | null} refused the key that was not accepted
   */
  async newKey(refused) {
    if (sessionStorage.getItem(KEY) !== refused) return true;
    this.asking ??= this.askForKey(refused !== null).finally(() => (this.asking = null));
    const key = await this.asking;
    if (key) sessionStorage.setItem(KEY, key);
    return Boolean(key);
  }
}

function unreachable() {
  return new Problem(
    navigator.onLine ? "The server does not answer." : "You are offline.",
    "Check that `unembed serve` is running and can be reached; the page goes on by itself once it answers.",
    0,
  );
}

/** @param {Response} response */
async function explain(response) {
  const answer = await response.json().catch(() => ({}));
  const wait = response.headers.get("Retry-After");
  const remedy = answer.remedy ?? (wait ? `Try again in ${wait} s.` : "Try again.");
  return new Problem(answer.message ?? `The server answered ${response.status}.`, remedy, response.status);
}
