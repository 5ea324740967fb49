/** Shows the tokens of one pass: masks, confidence as shade, what changed. Cells are kept, so that they can fade. */

import { element } from "./dom.js";

/**
 * @param {string} token as the tokenizer writes it
 * @returns {{text: string, joined: boolean}} what to show, and whether it goes on the word before
 */
export function readable(token) {
  return { text: token.replace(/^(##|[▁Ġ])/, ""), joined: token.startsWith("##") };
}

/**
 * @param {HTMLElement} list
 * @param {import("./types.js").Token[]} tokens
 */
export function showTokens(list, tokens) {
  while (list.childElementCount > tokens.length) list.lastElementChild?.remove();
  while (list.childElementCount < tokens.length) list.append(element("li"));
  tokens.forEach((token, index) => {
    const cell = /** @type {HTMLElement} */ (list.children[index]);
    const { text, joined } = readable(token.text);
    cell.className = "token";
    cell.classList.toggle("masked", token.masked);
    cell.classList.toggle("changed", token.changed && !token.masked);
    cell.classList.toggle("joined", joined && !token.masked);
    cell.textContent = token.masked ? "mask" : text;
    cell.title = token.masked ? "masked" : `${Math.round(100 * token.confidence)} % sure`;
    cell.style.setProperty("--confidence", token.masked ? "0" : token.confidence.toFixed(3));
  });
}
