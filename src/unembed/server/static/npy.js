/** Reads NumPy's .npy files: numbers of any usual type, one or two dimensions. Never runs anything found in one. */

import { Problem } from "./problem.js";

/** @type {Record<string, [number, (view: DataView, at: number, little: boolean) => number]>} */
const TYPES = {
  f2: [2, (view, at, little) => half(view.getUint16(at, little))],
  f4: [4, (view, at, little) => view.getFloat32(at, little)],
  f8: [8, (view, at, little) => view.getFloat64(at, little)],
  i1: [1, (view, at) => view.getInt8(at)],
  i2: [2, (view, at, little) => view.getInt16(at, little)],
  i4: [4, (view, at, little) => view.getInt32(at, little)],
  u1: [1, (view, at) => view.getUint8(at)],
};
const MAGIC = [0x93, ...new TextEncoder().encode("NUMPY")];

/**
 * @param {ArrayBuffer} buffer
 * @returns {number[][]} rows; a file of one dimension is one row
 */
export function readNpy(buffer) {
  const view = new DataView(buffer);
  if (buffer.byteLength < 12 || MAGIC.some((byte, index) => view.getUint8(index) !== byte)) {
    throw new Problem("This is not a .npy file.", "Save the vectors with numpy.save.");
  }
  const [start, length] = view.getUint8(6) === 1 ? [10, view.getUint16(8, true)] : [12, view.getUint32(8, true)];
  const header = new TextDecoder("latin1").decode(new Uint8Array(buffer, 0, Math.min(buffer.byteLength, start + length)));
  const [, order, type] = /'descr':\s*'([<>|=])(\w+)'/.exec(header) ?? [];
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").filter((part) => part.trim()).map(Number);
  if (!(type in TYPES)) {
    throw new Problem("The file does not hold plain numbers.", "Save it as float32: numpy.save(path, vectors.astype('float32')).");
  }
  if (/'fortran_order':\s*True/.test(header) || shape.length < 1 || shape.length > 2) {
    throw new Problem(
      `The file holds an array of shape (${shape.join(", ")}) that is not a list of vectors.`,
      "Save one vector, or one vector per row: numpy.save(path, numpy.ascontiguousarray(vectors)).",
    );
  }
  const [size, read] = TYPES[type];
  const [rows, columns] = shape.length === 1 ? [1, shape[0]] : shape;
  if (buffer.byteLength < start + length + rows * columns * size) {
    throw new Problem("The file is shorter than its header says.", "It was probably not copied whole: copy it again.");
  }
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => read(view, start + length + (row * columns + column) * size, order !== ">")),
  );
}

/** @param {number} bits of an IEEE half-precision number */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
