/** Reads NumPy's .npy files: numbers of any usual type, one or two dimensions. Never runs anything found in one. */

import { Problem } from "./problem.js";

/** @typedef {Float32Array | Float64Array | Int8Array | Int16Array | Int32Array | Uint8Array} Numbers */

/** @type {Record<string, [number, (view: DataView, at: number, little: boolean) => number, (new (buffer: ArrayBuffer) => Numbers) | null]>} */
const TYPES = {
  f2: [2, (view, at, little) => half(view.getUint16(at, little)), null],
  f4: [4, (view, at, little) => view.getFloat32(at, little), Float32Array],
  f8: [8, (view, at, little) => view.getFloat64(at, little), Float64Array],
  i1: [1, (view, at) => view.getInt8(at), Int8Array],
  i2: [2, (view, at, little) => view.getInt16(at, little), Int16Array],
  i4: [4, (view, at, little) => view.getInt32(at, little), Int32Array],
  u1: [1, (view, at) => view.getUint8(at), Uint8Array],
};
const MAGIC = [0x93, ...new TextEncoder().encode("NUMPY")];
const LITTLE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;

/**
 * @param {ArrayBuffer} buffer
 * @returns {Numbers[]} rows, which share their memory; a file of one dimension is one row
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
  const [size, read, Whole] = TYPES[type];
  const [rows, columns] = shape.length === 1 ? [1, shape[0]] : shape;
  const from = start + length;
  if (buffer.byteLength < from + rows * columns * size) {
    throw new Problem("The file is shorter than its header says.", "It was probably not copied whole: copy it again.");
  }
  // Numbers in the order of this machine are taken as they are; one by one they take seconds.
  const numbers =
    Whole && (size === 1 || (order !== ">") === LITTLE)
      ? new Whole(buffer.slice(from, from + rows * columns * size))
      : Float64Array.from({ length: rows * columns }, (_, index) => read(view, from + index * size, order !== ">"));
  return Array.from({ length: rows }, (_, row) => numbers.subarray(row * columns, (row + 1) * columns));
}

/** @param {number} bits of an IEEE half-precision number */
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}
