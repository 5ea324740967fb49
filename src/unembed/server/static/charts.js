/** Draws a vector as SVG: a strip with a bar for each number, and a histogram. Colours come from the style sheet. */

import { drawing } from "./dom.js";

const HALF = 50;

/**
 * @param {SVGElement} svg
 * @param {number[]} vector
 * @param {number[] | null} [before] the vector before a defence, drawn behind
 */
export function drawStrip(svg, vector, before = null) {
  const highest = Math.max(...vector.map(Math.abs), ...(before ?? []).map(Math.abs)) || 1;
  svg.setAttribute("viewBox", `0 ${-HALF} ${vector.length} ${2 * HALF}`);
  svg.replaceChildren(
    ...(before ? [bars(before, highest, "before", () => true)] : []),
    bars(vector, highest, "above", (number) => number > 0),
    bars(vector, highest, "below", (number) => number < 0),
  );
}

/**
 * @param {number[]} vector
 * @param {number} highest
 * @param {string} name
 * @param {(number: number) => boolean} wanted
 */
function bars(vector, highest, name, wanted) {
  const path = vector
    .map((number, index) => (wanted(number) ? `M${index + 0.5} 0V${((-number / highest) * HALF).toFixed(2)}` : ""))
    .join("");
  return drawing("path", { class: name, d: path });
}

/**
 * @param {SVGElement} svg
 * @param {import("./types.js").Histogram} histogram
 */
export function drawHistogram(svg, { counts }) {
  const highest = Math.max(...counts) || 1;
  svg.setAttribute("viewBox", `0 0 ${counts.length} 100`);
  svg.replaceChildren(
    ...counts.map((count, index) => {
      const height = (100 * count) / highest;
      return drawing("rect", { x: index + 0.08, y: 100 - height, width: 0.84, height });
    }),
  );
}
