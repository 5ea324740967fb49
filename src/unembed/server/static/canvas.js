/** Shows the tokens of one pass: masks, confidence as shade, what changed. Cells are kept, so that they can fade. */

import { element } from "./dom.js";

/**
 * @param {HTMLElement} list
 * @param {import("./types.js").Token[]} tokens
 */
export function showTokens(list, tokens) {
  while (list.childElementCount > tokens.length) list.lastElementChild?.remove();
  while (list.childElementCount < tokens.length) list.append(element("li"));
  tokens.forEach((token, index) => {
    const cell = /** @type {HTMLElement} */ (list.children[index]);
    cell.className = "token";
    cell.classList.toggle("masked", token.masked);
    cell.classList.toggle("changed", token.changed && !token.masked);
    cell.classList.toggle("joined", token.joined && !token.masked);
    cell.textContent = token.masked ? "mask" : token.text;
    cell.title = token.masked ? "masked" : `${Math.round(100 * token.confidence)} % sure`;
    cell.style.setProperty("--confidence", token.masked ? "0" : token.confidence.toFixed(3));
  });
}
