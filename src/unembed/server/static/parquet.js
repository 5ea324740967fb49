/** Reads vectors out of .parquet files: the first column that holds a list of numbers in each row. Loaded only when needed. */

import { Problem } from "./problem.js";
import { parquetMetadata, parquetReadObjects, parquetSchema } from "./vendor/hyparquet/index.js";

const COMPRESSED = /compression codec: (\w+)/;

/**
 * @param {ArrayBuffer} file
 * @returns {Promise<number[][]>}
 */
export async function readParquet(file) {
  let rows;
  try {
    /** @type {{element: {name: string}, children: object[]}[]} */
    const all = parquetSchema(parquetMetadata(file)).children;
    const columns = all.filter(({ children }) => children.length).map(({ element }) => element.name);
    rows = columns.length ? await parquetReadObjects({ file, columns }) : [];
  } catch (error) {
    const codec = COMPRESSED.exec(String(error))?.[1];
    if (codec) throw new Problem(`The file is compressed with ${codec}.`, "Save it with compression='snappy', the usual one.");
    throw new Problem("This is not a .parquet file that can be read here.", "Save it again, or as .npy.");
  }
  const first = rows[0] ?? {};
  const column = Object.keys(first).find((name) => isList(first[name]));
  if (!column) throw new Problem("No column of the file holds lists of numbers.", "Save the vectors as a column of lists.");
  return rows.map((row) => Array.from(row[column] ?? [], Number));
}

/** @param {unknown} value */
function isList(value) {
  return (Array.isArray(value) || ArrayBuffer.isView(value)) && /** @type {any} */ (value).length > 1 && typeof /** @type {any} */ (value)[0] === "number";
}
