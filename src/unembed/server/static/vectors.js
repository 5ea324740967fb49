/** Reads vectors out of what people paste or drop: JSON of any nesting, JSON lines, CSV, plain lists, .npy and .parquet files. */

import { readNpy } from "./npy.js";
import { Problem } from "./problem.js";

/** @typedef {ArrayLike<number>} Row */

const HOW = "Paste a list such as [0.12, -0.03, ...], or drop a .npy, .csv, .jsonl, .json or .parquet file.";

/**
 * @param {File} file
 * @param {number} [dimension] numbers of a vector, where that is known
 * @returns {Promise<Row[]>}
 */
export async function readFile(file, dimension) {
  const name = file.name.toLowerCase();
  if (name.endsWith(".npy")) return checked(readNpy(await file.arrayBuffer()));
  if (name.endsWith(".parquet")) {
    const { readParquet } = await import("./parquet.js");
    return checked(await readParquet(await file.arrayBuffer()));
  }
  return readText(await file.text(), dimension);
}

/**
 * @param {string} text
 * @param {number} [dimension]
 * @returns {Row[]} at least one row of finite numbers
 */
export function readText(text, dimension) {
  if (!text.trim()) throw new Problem("There is no vector yet.", HOW);
  const whole = parsed(text);
  if (whole !== undefined) return checked(rowsIn(whole));
  const lines = text.split(/\r?\n/).filter((line) => line.trim());
  const values = lines.map((line) => parsed(line.replace(/,\s*$/, "")));
  if (values.every((value) => value && typeof value === "object")) return checked(values.flatMap(rowsIn));
  return checked(tableOf(lines, dimension) ?? split(listOf(text), dimension));
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Every list of numbers anywhere in a JSON value, so that the answer of an embedding service can be pasted as it is.
 *
 * @param {unknown} value
 * @returns {number[][]}
 */
export function rowsIn(value) {
  if (typeof value === "number") return [[value]];
  if (Array.isArray(value) && value.length && value.every((item) => typeof item === "number")) return [value];
  if (!value || typeof value !== "object") return [];
  return Object.values(value).flatMap((item) => (typeof item === "object" ? rowsIn(item) : []));
}

/**
 * The rows of a table: of each line the numbers, or a list in one of its cells. Columns of ids and texts before them are left out.
 *
 * @param {string[]} lines
 * @param {number} [dimension]
 * @returns {number[][] | null} null if it is no table
 */
function tableOf(lines, dimension) {
  const rows = lines.map(cellsOf).map((cells) => {
    const list = cells.map((cell) => (/^\s*\[/.test(cell) ? rowsIn(parsed(cell))[0] : undefined)).find((row) => row && row.length > 1);
    if (list) return list;
    const last = cells.findLastIndex((cell) => cell.trim() === "" || Number.isNaN(Number(cell)));
    if (lines.length === 1 && last < 0) return []; // plain numbers
    const numbers = cells.slice(last + 1).map(Number);
    const more = dimension ? numbers.length - dimension : 0;
    return dimension && 0 < more && more < dimension ? numbers.slice(more) : numbers;
  });
  if (lines.length > 1 && !rows[0].length) rows.shift(); // the names of the columns
  const width = dimension ?? rows[0]?.length;
  return width > 1 && rows.length && rows.every((row) => row.length === width) ? rows : null;
}

/**
 * The cells of a line of CSV; quotes keep commas.
 *
 * @param {string} line
 */
function cellsOf(line) {
  const bare = line.trim().replace(/^[[(](.*)[\])],?$/, "$1"); // as NumPy prints a row
  const outside = bare.replace(/"[^"]*"/g, "");
  const separator = ["\t", ";", ","].find((sign) => outside.includes(sign)) ?? " ";
  const cells = [""];
  let quoted = false;
  for (const sign of separator === " " ? bare.trim().replace(/\s+/g, " ") : bare) {
    if (sign === '"') quoted = !quoted;
    else if (sign === separator && !quoted) cells.push("");
    else cells[cells.length - 1] += sign;
  }
  return cells;
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

/**
 * Several vectors one after the other are several rows.
 *
 * @param {number[]} numbers
 * @param {number} [dimension]
 */
function split(numbers, dimension) {
  if (!dimension || numbers.length % dimension) return [numbers];
  return Array.from({ length: numbers.length / dimension }, (_, row) => numbers.slice(row * dimension, (row + 1) * dimension));
}

/**
 * @template {Row} R
 * @param {R[]} rows
 */
function checked(rows) {
  if (!rows.length || !rows[0].length) throw new Problem("There are no numbers in it.", HOW);
  rows.forEach((row, number) => {
    for (let index = 0; index < row.length; index++) {
      if (Number.isFinite(row[index])) continue;
      const where = rows.length > 1 ? `vector ${number + 1}` : "the vector";
      throw new Problem(`Number ${index + 1} of ${where} is not finite.`, "Leave out rows with NaN or infinity.");
    }
  });
  return rows;
}
