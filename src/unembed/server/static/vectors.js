/** Reads vectors out of what people paste or drop: JSON of any nesting, plain lists of numbers, .npy files. */

import { readNpy } from "./npy.js";
import { Problem } from "./problem.js";

const HOW = "Paste a list such as [0.12, -0.03, ...], or drop a .npy or .json file.";

/**
 * @param {File} file
 * @returns {Promise<number[][]>}
 */
export async function readFile(file) {
  return file.name.endsWith(".npy") ? checked(readNpy(await file.arrayBuffer())) : readText(await file.text());
}

/**
 * @param {string} text
 * @returns {number[][]} at least one row of finite numbers
 */
export function readText(text) {
  if (!text.trim()) throw new Problem("There is no vector yet.", HOW);
  let rows;
  try {
    rows = rowsIn(JSON.parse(text));
  } catch {
    rows = [listOf(text)];
  }
  return checked(rows);
}

/**
 * Every list of numbers anywhere in a JSON value, so that the answer of an embedding service can be pasted as it is.
 *
 * @param {unknown} value
 * @returns {number[][]}
 */
function rowsIn(value) {
  if (Array.isArray(value) && value.length && value.every((item) => typeof item === "number")) return [value];
  return value && typeof value === "object" ? Object.values(value).flatMap(rowsIn) : [];
}

/** @param {string} text */
function listOf(text) {
  const parts = text.replace(/^[\s[(]+|[\s\])]+$/g, "").split(/[\s,;]+/);
  return parts.map((part, index) => {
    const number = Number(part);
    if (part === "" || Number.isNaN(number)) {
      throw new Problem(`Number ${index + 1} of the vector is “${part.slice(0, 20)}”, which is not a number.`, HOW);
    }
    return number;
  });
}

/** @param {number[][]} rows */
function checked(rows) {
  if (!rows.length || !rows[0].length) throw new Problem("There are no numbers in it.", HOW);
  for (const row of rows) {
    const index = row.findIndex((number) => !Number.isFinite(number));
    if (index >= 0) throw new Problem(`Number ${index + 1} of the vector is not finite.`, "Leave out rows with NaN or infinity.");
  }
  return rows;
}
