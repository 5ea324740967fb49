/** Stage two: the vector as pictures and figures. */

import { drawHistogram, drawStrip } from "./charts.js";
import { element, find } from "./dom.js";

const pictures = find("pictures", HTMLElement);
const strip = /** @type {SVGElement} */ (pictures.querySelector(".strip"));
const histogram = /** @type {SVGElement} */ (pictures.querySelector(".histogram"));
const copy = find("copy-vector", HTMLButtonElement);

/** @type {number[]} */
let shown = [];

/**
 * @param {number[]} vector
 * @param {import("./types.js").Statistics} statistics
 * @param {number[] | null} before the vector without its defence, if it has one
 */
export function showVector(vector, statistics, before) {
  shown = vector;
  drawStrip(strip, vector, before);
  drawHistogram(histogram, statistics.histogram);
  const { dimension, norm, minimum, maximum, entropy } = statistics;
  const figures = {
    Dimensions: String(dimension),
    Norm: norm.toFixed(3),
    Smallest: signed(minimum),
    Largest: signed(maximum),
    Entropy: `${entropy.toFixed(2)} bits`,
  };
  find("facts", HTMLElement).replaceChildren(
    ...Object.entries(figures).map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))),
  );
  for (const node of document.querySelectorAll(".dimension")) node.textContent = String(dimension);
  copy.disabled = false;
}

/** @param {number} value */
const signed = (value) => value.toFixed(3).replace("-", "−");

copy.addEventListener("click", async () => {
  await navigator.clipboard.writeText(JSON.stringify(shown));
  copy.textContent = "Copied";
  setTimeout(() => (copy.textContent = "Copy the numbers"), 1500);
});
