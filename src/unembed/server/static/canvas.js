/** Shows the tokens of one pass, word by word: masks, confidence as shade, what changed. Cells are kept, so that they can fade. */

import { element } from "./dom.js";

/**
 * @param {HTMLElement} list
 * @param {import("./types.js").Token[]} tokens
 */
export function showTokens(list, tokens) {
  const words = toWords(tokens);
  resize(list, words.length, "li");
  words.forEach((pieces, index) => {
    const word = /** @type {HTMLElement} */ (list.children[index]);
    // A frame goes around the whole word: one that is cut at its pieces looks broken.
    word.className = "word";
    word.classList.toggle("changed", pieces.some((token) => token.changed && !token.masked));
    resize(word, pieces.length, "span");
    pieces.forEach((token, place) => showToken(/** @type {HTMLElement} */ (word.children[place]), token));
  });
}

/**
 * @param {import("./types.js").Token[]} tokens
 * @returns {import("./types.js").Token[][]} the pieces of each word together; every mask by itself
 */
export function toWords(tokens) {
  /** @type {import("./types.js").Token[][]} */
  const words = [];
  for (const token of tokens) {
    const last = words.at(-1);
    if (last && token.joined && !token.masked && !last[0].masked) last.push(token);
    else words.push([token]);
  }
  return words;
}

/**
 * @param {HTMLElement} cell
 * @param {import("./types.js").Token} token
 */
function showToken(cell, token) {
  cell.className = token.masked ? "token masked" : "token";
  cell.textContent = token.masked ? "mask" : token.text;
  cell.title = token.masked ? "masked" : `${Math.round(100 * token.confidence)} % sure`;
  cell.style.setProperty("--confidence", token.masked ? "0" : token.confidence.toFixed(3));
}

/**
 * @param {HTMLElement} parent
 * @param {number} count
 * @param {"li" | "span"} tag
 */
function resize(parent, count, tag) {
  while (parent.childElementCount > count) parent.lastElementChild?.remove();
  while (parent.childElementCount < count) parent.append(element(tag));
}
