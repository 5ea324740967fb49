/** Puts the page together: reads what is given and set, runs inversions, and hands what arrives to the parts of the page. */

import { Api } from "./api.js";
import { Controls } from "./controls.js";
import { find } from "./dom.js";
import { Input } from "./input.js";
import { Lane } from "./lane.js";
import { Many } from "./many.js";
import { askForKey, clearComplaint, complain, describeWait, onRetry, say } from "./notices.js";
import { Preview } from "./preview.js";
import { Problem } from "./problem.js";
import { Progress, hideProgress, onKeep } from "./progress.js";
import { loadRecording } from "./recording.js";
import { duration, showResults, showUnfinished } from "./results.js";
import { applyFragment, defenceOf, readSettings, requestsFor, searches, toFragment } from "./settings.js";
import { offerSharing } from "./share.js";
import { connectTransport } from "./transport.js";
import { showVector } from "./vector-view.js";
import { showWords } from "./words-view.js";

const KNOCK_EVERY = 3000;
// Between the blind and the guided recording: long enough to read the first result.
const READING_PAUSE = 1800;

const form = find("page", HTMLFormElement);
const lanesNode = find("lanes", HTMLElement);
const verdict = find("verdict", HTMLElement);
const nudge = find("nudge", HTMLElement);
const origin = find("origin", HTMLElement);
const stillness = matchMedia("(prefers-reduced-motion: reduce)");
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
let confirming = null;
/** @type {AbortController | null} */
let replaying = null;
/** @type {AbortController | null} */
let knocking = null;
let revealed = false;
/** @type {(() => void) | null} called when a result is shown */
let onRevealed = null;
const preview = new Preview(api);

const player = connectTransport(showFrame);
const input = new Input({ onTyping, onGiven: () => void run(), onProblem: complain, onRows: showMany });
const many = new Many(api, { onOpen: openRow, onProblem: complain });

/** @param {import("./player.js").Player} player */
function showFrame(player) {
  if (!lanes.length) return;
  for (const lane of lanes) lane.show(player.index);
  if (revealed) return;
  const results = lanes.flatMap(({ label, result }) => (result ? [{ label, result }] : []));
  // The result waits for the last frame, unless somebody takes the player into their own hands.
  if (!player.complete || player.playing || results.length < lanes.length) {
    if (player.length) showUnfinished(lanes[0].start?.reference ?? null, lanes.map((lane) => ({ label: lane.label, text: lane.textAt(player.index) })));
    return;
  }
  reveal(results);
}

/** @param {import("./results.js").Compared[]} results */
function reveal(results) {
  revealed = true;
  hideProgress();
  showResults(results, controls.catalogue.measures);
  markStale(false);
  nudge.hidden = !results.every(({ result }) => !result.encoder_calls && result.cosine !== null && !result.measures?.exact_match);
  say("Done.", verdict.textContent ?? "");
  onRevealed?.();
}

/** @param {boolean} stale whether what is shown of a result belongs to an earlier run */
function markStale(stale) {
  for (const id of ["verdict", "baseline", "leaks", "reliability", "warnings", "notices", "details"]) {
    find(id, HTMLElement).classList.toggle("stale", stale);
  }
}

/**
 * @param {Lane[]} next
 * @param {string} from what the badge says about where they come from
 */
function mount(next, from) {
  lanes = next;
  revealed = false;
  origin.textContent = from;
  origin.hidden = !from;
  lanesNode.replaceChildren(...lanes.map((lane) => lane.node));
  lanesNode.dataset.lanes = String(lanes.length);
}

/** Starts over with what is given and set now. */
async function run() {
  if (!controls) return;
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
  mount(requestsFor(settings, given).map(({ label, body }) => new Lane(label, body)), "");
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
  const progress = new Progress(settings.rounds);
  for await (const { event, data } of api.invert(lane.body, signal)) {
    if (event === "queued") say(describeWait(data));
    if (event === "start") {
      say("Reading…");
      lane.take(event, data);
      player.extend(1);
      if (index === 0) {
        showWords(data.words);
        void preview.draw(data, settings, given, signal);
      }
    }
    if (event === "step") {
      lane.take(event, data);
      if (searches(lane.strategy)) progress.add(data);
      player.extend(lane.frames.length);
    }
    if (event === "done") lane.take(event, data);
  }
}

/**
 * Plays what was recorded with this model, at once, then asks the server for the same.
 *
 * @param {import("./recording.js").Recording} recording
 */
async function playRecording(recording) {
  const { signal } = (replaying = new AbortController());
  const label = `Recorded ${recording.date}`;
  say("This was recorded; it runs live next.");
  for (const [number, { attacker, events }] of recording.runs.entries()) {
    if (number && !stillness.matches) await new Promise((resolve) => setTimeout(resolve, READING_PAUSE));
    if (signal.aborted) return;
    controls.input("attacker").value = attacker;
    const settings = refresh(false);
    const lane = new Lane(attacker === "guided" ? "guided" : settings.strategy, {});
    for (const { event, data } of events) lane.take(event, data);
    mount([lane], label);
    markStale(true);
    if (lane.start) {
      showWords(lane.start.words);
      showVector(lane.start.vector, lane.start.statistics, null);
    }
    const shown = new Promise((resolve) => (onRevealed = () => resolve(undefined)));
    signal.addEventListener("abort", () => onRevealed?.(), { once: true });
    player.reset();
    player.extend(lane.frames.length);
    player.finish();
    await shown;
  }
  onRevealed = null;
  if (signal.aborted) return;
  await confirmLive(`${label}. Running it live now…`);
}

/**
 * Runs live what was shown from a recording; the recording stays until the live result is there.
 *
 * @param {string} label
 */
async function confirmLive(label) {
  const { signal } = (confirming = new AbortController());
  const settings = readSettings(form);
  origin.textContent = label;
  const [{ label: name, body }] = requestsFor(settings, input.read());
  const lane = new Lane(name, body);
  try {
    for await (const { event, data } of api.invert(body, signal)) lane.take(event, data);
  } catch (error) {
    if (!signal.aborted) {
      origin.textContent = label.replace(/\. Running.*/, "");
      fail(error);
    }
    return;
  }
  if (signal.aborted || !lane.result) return;
  mount([lane], `Live: run just now in ${duration(lane.result.milliseconds)}`);
  player.jump(lane.frames.length);
}

/** Somebody types: what is shown belongs to another sentence. */
function onTyping() {
  for (const work of [replaying, confirming]) work?.abort();
  markStale(true);
  if (controls && !running) preview.soon(() => [readSettings(form), input.read()]);
}

function cancel() {
  preview.cancel();
  for (const work of [knocking, replaying, confirming, running]) work?.abort();
  running = null;
  onRevealed = null;
  hideProgress();
}

/** Whether a search is under way that has a text to keep. */
function searching() {
  return Boolean(running) && lanes.some((lane) => searches(lane.strategy) && lane.frames.some((frame) => frame.texts_embedded));
}

/** Ends the searches that are under way; their best texts come as any result. */
async function keepBest() {
  say("Stopping: the best text so far is kept.");
  const under = lanes.filter((lane) => lane.start && !lane.result && searches(lane.strategy));
  await Promise.all(under.map((lane) => api.stop(lane.start?.id ?? ""))).catch(complain);
}

/**
 * @param {import("./vectors.js").Row[]} rows
 * @param {string} name
 */
function showMany(rows, name) {
  const settings = readSettings(form);
  const strategy = searches(settings.strategy) ? "confidence" : settings.strategy;
  const options = { model: settings.model, defence: defenceOf(settings), strategy, steps: settings.steps };
  void many.show(rows, name, options, controls.catalogue.limits.batch);
}

/** @param {number} number of a row of the file, counted from 1 */
function openRow(number) {
  input.chooseRow(number);
  find("outcome", HTMLElement).scrollIntoView({ block: "start" });
}

/** @param {boolean} is */
function busy(is) {
  form.classList.toggle("busy", is);
  lanesNode.setAttribute("aria-busy", String(is));
  find("run-label", HTMLElement).textContent = is ? "Cancel" : "Read it back";
  find("run-key", HTMLElement).textContent = is ? "Esc" : "Enter";
  find("run-key", HTMLElement).hidden = is && lanes.some((lane) => searches(lane.strategy));
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

/**
 * Makes labels, hints and the address say what is set.
 *
 * @param {boolean} [address] whether to change the address
 */
function refresh(address = true) {
  const settings = readSettings(form);
  input.setMode(settings.mode);
  input.dimension = controls.model.dimension;
  many.setVisible(settings.mode === "vector");
  controls.refresh(settings);
  if (address) history.replaceState(null, "", fragment(false) || location.pathname + location.search);
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
  const { mode } = refresh(Boolean(location.hash));
  find("defend", HTMLDetailsElement).open ||= location.hash.includes("defence=");
  const recording = location.hash.length > 1 ? null : await recorded;
  if (recording && input.text.value === recording.text) await playRecording(recording);
  else if (mode === "text") await run();
  else say(controls.model.guided ? "" : "This server has no encoder: give it a vector.");
}

/** @type {Promise<import("./recording.js").Recording | null>} */
let recorded = Promise.resolve(null);

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
    recorded = loadRecording(controls.model);
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
  if (event.target.name === "strength") onTyping();
});
for (const field of [input.text, input.vector]) {
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    run();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !running) return;
  if (searching()) keepBest();
  else stop();
});
onKeep(keepBest);
addEventListener("hashchange", () => controls && applyAddress());
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
