/** What the page says about itself: the status line, the alert with its remedy, and the question for a key. */

import { element, find } from "./dom.js";
import { Problem } from "./problem.js";

const status = find("status", HTMLElement);
const alert = find("alert", HTMLElement);
const message = find("alert-message", HTMLElement);
const remedy = find("alert-remedy", HTMLElement);
const dialog = find("key-dialog", HTMLDialogElement);

/**
 * @param {string} text read out by screen readers as well
 * @param {string} [aloud] only read out: it can be seen elsewhere
 */
export function say(text, aloud = "") {
  status.replaceChildren(text, ...(aloud ? [element("span", { class: "unseen" }, ` ${aloud}`)] : []));
}

/** @param {import("./types.js").Queued} queued */
export function describeWait({ position, seconds }) {
  const estimate = seconds === null ? "" : seconds < 1 ? ", it starts in a moment" : `, it starts in about ${seconds} s`;
  return `Waiting: number ${position} in the queue${estimate}.`;
}

/** @param {unknown} error */
export function complain(error) {
  const problem = error instanceof Problem ? error : new Problem("Something on this page broke.", "Reload it.", 500);
  if (!(error instanceof Problem)) console.error(error);
  message.textContent = problem.message;
  remedy.textContent = problem.remedy;
  alert.hidden = false;
  say("");
}

export function clearComplaint() {
  alert.hidden = true;
}

/** @param {() => void} retry */
export function onRetry(retry) {
  find("alert-retry", HTMLButtonElement).addEventListener("click", retry);
}

/**
 * @param {boolean} refused whether a key was given and not accepted
 * @returns {Promise<string | null>}
 */
export function askForKey(refused) {
  const field = find("key", HTMLInputElement);
  if (refused) find("key-note", HTMLElement).textContent = "That key was not accepted. Try another one.";
  field.value = "";
  dialog.returnValue = "cancel";
  dialog.showModal();
  field.focus();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "use" ? field.value.trim() : null), { once: true });
  });
}
