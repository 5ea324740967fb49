/** Draws what a defence costs and what it hides, over its strength: search quality, and what two attackers read. */

import { drawing, element, find } from "./dom.js";

const [WIDTH, HEIGHT] = [300, 100];
/** @type {["neighbours" | "adaptive" | "naive", string, string][]} */
const LINES = [
  ["neighbours", "quality", "of the ten nearest texts are still found by a search"],
  ["adaptive", "adaptive", "of the content words are read by an attacker who knows the defence and adapts"],
  ["naive", "naive", "of the content words are read by an attacker who does not"],
];

const picture = /** @type {SVGElement} */ (/** @type {unknown} */ (document.getElementById("curve")));

/**
 * @param {import("./types.js").Defence} defence
 * @param {number} strength
 */
export function drawCurve(defence, strength) {
  picture.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
  picture.replaceChildren(
    drawing("path", { class: "frame", d: `M0 0V${HEIGHT}H${WIDTH}` }),
    drawing("path", { class: "now", d: `M${strength * WIDTH} 0V${HEIGHT}` }),
    ...LINES.map(([name, look]) => drawing("path", { class: look, d: path(defence[name]) })),
  );
  find("curve-key", HTMLElement).replaceChildren(
    ...LINES.map(([name, look, meaning]) =>
      element("li", {}, element("i", { class: `line ${look}` }), `${Math.round(100 * between(defence[name], strength))} % ${meaning}`),
    ),
  );
}

/** @param {number[]} values at equal steps */
function path(values) {
  return values.map((value, index) => `${index ? "L" : "M"}${((index / (values.length - 1)) * WIDTH).toFixed(1)} ${((1 - value) * HEIGHT).toFixed(1)}`).join("");
}

/**
 * What values at equal steps from 0 to 1 say about a place between them.
 *
 * @param {number[]} values
 * @param {number} place
 * @returns {number}
 */
export function between(values, place) {
  const position = place * (values.length - 1);
  const left = Math.min(Math.floor(position), values.length - 2);
  return values[left] + (position - left) * (values[left + 1] - values[left]);
}
