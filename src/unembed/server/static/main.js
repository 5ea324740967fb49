/** Puts the page together: reads what is given and set, runs inversions, and hands what arrives to the four stages. */

import { Api } from "./api.js";
import { Controls } from "./controls.js";
import { find } from "./dom.js";
import { Input } from "./input.js";
import { Lane } from "./lane.js";
import { askForKey, clearComplaint, complain, onRetry, say } from "./notices.js";
import { Problem } from "./problem.js";
import { showResults } from "./results.js";
import { applyFragment, defenceOf, readSettings, requestsFor, toFragment } from "./settings.js";
import { offerSharing } from "./share.js";
import { connectTransport } from "./transport.js";
import { showVector } from "./vector-view.js";

const TYPING_PAUSE = 250;
const KNOCK_EVERY = 3000;

const form = find("page", HTMLFormElement);
const lanesNode = find("lanes", HTMLElement);
const verdict = find("verdict", HTMLElement);
const warningsNode = find("warnings", HTMLElement);
const resultsNode = find("results", HTMLElement);
const nudge = find("nudge", HTMLElement);
const api = new Api(askForKey);

/** @type {Controls} */
let controls;
/** @type {import("./settings.js").Settings} */
let usual;
/** @type {Lane[]} */
let lanes = [];
/** @type {AbortController | null} */
let running = null;
/** @type {AbortController | null} */
let previewing = null;
/** @type {AbortController | null} */
let knocking = null;
/** @type {ReturnType<typeof setTimeout> | undefined} */
let pause;
let revealed = false;
/** @type {{text: string, model: string, vector: Promise<number[] | null>}} */
let plain = { text: "", model: "", vector: Promise.resolve(null) };

const player = connectTransport(showFrame);
const input = new Input({ onTyping: previewSoon, onGiven: () => void run(), onProblem: complain });

/** @param {import("./player.js").Player} player */
function showFrame(player) {
  for (const lane of lanes) lane.show(player.index);
  // The result waits for the last frame, unless somebody takes the player into their own hands.
  const results = lanes.flatMap(({ label, result }) => (result ? [{ label, result }] : []));
  if (revealed || !player.complete || player.playing || results.length < lanes.length) return;
  revealed = true;
  showResults(verdict, resultsNode, results, controls.catalogue.measures);
  markStale(false);
  nudge.hidden = !results.every(({ result }) => !result.encoder_calls && result.cosine !== null && !result.measures?.exact_match);
  say(`Done. ${verdict.textContent}`);
}

/** @param {boolean} stale whether what stage four shows belongs to an earlier run */
function markStale(stale) {
  for (const node of [verdict, warningsNode, resultsNode]) node.classList.toggle("stale", stale);
}

/** Starts over with what is given and set now. */
async function run() {
  cancel();
  clearComplaint();
  const settings = refresh();
  let given;
  try {
    given = input.read();
  } catch (error) {
    return complain(error);
  }
  const work = (running = new AbortController());
  lanes = requestsFor(settings, given).map(({ label, body }) => new Lane(label, body));
  revealed = false;
  lanesNode.replaceChildren(...lanes.map((lane) => lane.node));
  lanesNode.dataset.lanes = String(lanes.length);
  markStale(true);
  player.reset();
  busy(true);
  say("Reading…");
  try {
    await Promise.all(lanes.map((lane, index) => follow(lane, index, settings, given, work.signal)));
    player.finish();
  } catch (error) {
    if (work.signal.aborted) return;
    work.abort();
    fail(error);
  } finally {
    if (running === work) {
      running = null;
      busy(false);
    }
  }
}

/**
 * @param {Lane} lane
 * @param {number} index
 * @param {import("./settings.js").Settings} settings
 * @param {import("./settings.js").Given} given
 * @param {AbortSignal} signal
 */
async function follow(lane, index, settings, given, signal) {
  for await (const { event, data } of api.invert(lane.body, signal)) {
    if (event === "queued") say(describeWait(data));
    if (event === "start") {
      say("Reading…");
      lane.expect(data.length ?? data.reference?.tokens.length ?? 8);
      player.extend(1);
      if (index === 0) drawVector(data, settings, given, signal);
    }
    if (event === "step") {
      lane.add(data);
      player.extend(lane.frames.length);
    }
    if (event === "done") lane.result = data;
  }
}

/** @param {import("./types.js").Queued} queued */
function describeWait({ position, seconds }) {
  const estimate = seconds === null ? "" : seconds < 1 ? ", it starts in a moment" : `, it starts in about ${seconds} s`;
  return `Waiting: number ${position} in the queue${estimate}.`;
}

/**
 * @param {{vector: number[], statistics: import("./types.js").Statistics}} answer
 * @param {import("./settings.js").Settings} settings
 * @param {import("./settings.js").Given} given
 * @param {AbortSignal} signal
 */
async function drawVector({ vector, statistics }, settings, given, signal) {
  showVector(vector, statistics, null);
  if (!defenceOf(settings)) return;
  const before = "vector" in given ? given.vector : await vectorOf(given.text, settings.model);
  if (!signal.aborted) showVector(vector, statistics, before);
}

/**
 * The vector of a sentence without any defence, remembered as long as the sentence stays.
 *
 * @param {string} text
 * @param {string} model
 * @returns {Promise<number[] | null>} null when the server does not give it: it is only drawn behind the other vector
 */
function vectorOf(text, model) {
  if (plain.text !== text || plain.model !== model) {
    const vector = api.encode({ text, model }).then(
      (answer) => answer.vector,
      () => null,
    );
    plain = { text, model, vector };
  }
  return plain.vector;
}

/** Redraws the vector while somebody types or moves the slider. Its errors can wait for the run. */
async function preview() {
  if (!controls || running) return;
  previewing?.abort();
  const { signal } = (previewing = new AbortController());
  const settings = readSettings(form);
  try {
    const given = input.read();
    if ("text" in given) {
      const body = { ...given, model: settings.model, defence: defenceOf(settings) };
      await drawVector(await api.encode(body, signal), settings, given, signal);
    }
  } catch (error) {
    if (!(error instanceof Problem) && !signal.aborted) throw error;
  }
}

function previewSoon() {
  markStale(true);
  clearTimeout(pause);
  pause = setTimeout(preview, TYPING_PAUSE);
}

function cancel() {
  clearTimeout(pause);
  for (const work of [previewing, knocking, running]) work?.abort();
  running = null;
}

/** @param {boolean} is */
function busy(is) {
  form.classList.toggle("busy", is);
  lanesNode.setAttribute("aria-busy", String(is));
  find("run-label", HTMLElement).textContent = is ? "Cancel" : "Read it back";
  find("run-key", HTMLElement).textContent = is ? "Esc" : "Enter";
}

/** @param {unknown} error */
async function fail(error) {
  complain(error);
  player.finish();
  if (!(error instanceof Problem && error.unreachable)) return;
  const { signal } = (knocking = new AbortController());
  do await new Promise((resolve) => setTimeout(resolve, KNOCK_EVERY));
  while (!signal.aborted && !(await api.alive()));
  if (!signal.aborted) start();
}

/** Makes labels, hints and the address say what is set. */
function refresh() {
  const settings = readSettings(form);
  input.setMode(settings.mode);
  controls.refresh(settings);
  history.replaceState(null, "", fragment(false) || location.pathname + location.search);
  return settings;
}

/** @param {boolean} withText */
function fragment(withText) {
  const settings = readSettings(form);
  /** @type {Record<string, string>} */
  const more = {};
  if (settings.mode === "text" && input.example >= 0) more.example = String(input.example);
  else if (settings.mode === "text" && withText) more.text = input.text.value.trim();
  return toFragment(settings, usual, more);
}

/** Applies the address, and runs what it says, or the first example. */
async function applyAddress() {
  const { text, example } = applyFragment(form, location.hash);
  input.text.value = text || (input.examples[example ?? 0] ?? input.examples[0]).text;
  controls.adaptToModel();
  const { mode } = refresh();
  find("defend", HTMLDetailsElement).open ||= location.hash.includes("defence=");
  if (mode === "text") await run();
  else say(controls.model.guided ? "" : "This server has no encoder: give it a vector.");
}

async function start() {
  cancel();
  clearComplaint();
  if (controls) return run();
  say("Loading…");
  try {
    const [catalogue, { examples }] = await Promise.all([api.models(), api.examples()]);
    controls = new Controls(form, catalogue);
    usual = readSettings(form);
    input.examples = examples;
  } catch (error) {
    return fail(error);
  }
  await applyAddress();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (!controls) return;
  if (running) stop();
  else run();
});
form.addEventListener("change", (event) => {
  const field = event.target;
  if (!controls || !(field instanceof HTMLInputElement || field instanceof HTMLSelectElement) || !field.name) return;
  if (field.name === "model") controls.adaptToModel();
  if (field.name === "defence") controls.suggestStrength();
  const { mode } = refresh();
  if (field.name === "mode" && !(mode === "vector" ? input.vector : input.text).value) return;
  run();
});
form.addEventListener("input", (event) => {
  if (!controls || !(event.target instanceof HTMLInputElement) || event.target.type !== "range" || !event.target.name) return;
  controls.refresh(readSettings(form));
  if (event.target.name === "strength") previewSoon();
});
for (const field of [input.text, input.vector]) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    run();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && running) stop();
});
addEventListener("hashchange", applyAddress);
find("nudge-guided", HTMLButtonElement).addEventListener("click", () => {
  controls.input("attacker").value = "guided";
  run();
});
onRetry(start);
offerSharing(fragment);
start();

function stop() {
  cancel();
  busy(false);
  player.finish();
  say("Cancelled.");
}
