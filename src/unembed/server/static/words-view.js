/** The words that a vector gives away by itself: a tick where the sentence has the word, a wave where it has a form of it. */

import { element, find } from "./dom.js";

const SIGNS = { same: "✓", near: "≈", lost: "" };
const MEANINGS = { same: "in the sentence", near: "another form of it is in the sentence", lost: "not in the sentence" };

const list = find("words", HTMLElement);

/** @param {import("./types.js").ShownWord[]} words the surest first */
export function showWords(words) {
  // Those that hit come first: whoever looks for a second sees them.
  const order = { same: 0, near: 1, lost: 2 };
  const sorted = words.every(({ fate }) => fate) ? words.toSorted((a, b) => order[a.fate ?? "lost"] - order[b.fate ?? "lost"]) : words;
  list.replaceChildren(...(sorted.length ? sorted.map(chip) : [element("li", { class: "none" }, "This model cannot name single words.")]));
}

/** @param {import("./types.js").ShownWord} word */
function chip({ text, fate }) {
  if (!fate) return element("li", {}, text);
  const sign = SIGNS[fate] ? [element("span", { "aria-hidden": true }, SIGNS[fate])] : [];
  return element("li", { class: fate }, ...sign, text, element("span", { class: "unseen" }, `, ${MEANINGS[fate]}`));
}
