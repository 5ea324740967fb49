/** The recorded opener: what the server said when a sentence was read back, with the very model that is served now. */

/**
 * @typedef {{attacker: "blind" | "guided", events: {event: string, data: any}[]}} Run
 * @typedef {{identity: string, version: string, date: string, text: string, runs: Run[]}} Recording
 */

/**
 * @param {import("./types.js").Model} model
 * @returns {Promise<Recording | null>} null unless it was made with this model
 */
export async function loadRecording(model) {
  try {
    const response = await fetch(new URL("./recorded.json", import.meta.url));
    /** @type {Recording} */
    const recording = await response.json();
    return recording.identity === model.identity && model.guided ? recording : null;
  } catch {
    return null;
  }
}
