/**
 * The shapes that the server answers with, for the type comments of the other modules. Holds no code.
 *
 * @typedef {{text: string, joined: boolean, masked: boolean, changed: boolean, confidence: number}} Token
 * @typedef {{pass: number, mask_rate: number, score: number | null, texts_embedded: number, tokens: Token[]}} Step
 * @typedef {{edges: number[], counts: number[]}} Histogram
 * @typedef {{dimension: number, norm: number, minimum: number, maximum: number, mean: number, entropy: number,
 *   histogram: Histogram}} Statistics
 * @typedef {{text: string, tokens: string[], cut: boolean}} Reference
 * @typedef {{name: string, label: string, meaning: string, format: "share" | "cosine" | "number", hit: boolean}} Measure
 * @typedef {{model: string, length: number | null, statistics: Statistics, vector: number[],
 *   reference: Reference | null}} Start
 * @typedef {{text: string, strategy: string, passes: number, milliseconds: number, score: number,
 *   cosine: number | null, encoder_calls: number, surrogate_calls: number, reference: Reference | null, measures: Record<string, number> | null,
 *   statistics: Statistics, warnings: string[], model: string}} Result
 * @typedef {{position: number, seconds: number | null}} Queued
 * @typedef {{name: string, encoder: string, dimension: number, canvas_length: number, strategies: string[],
 *   guided: boolean, parameters: number, default: boolean}} Model
 * @typedef {{kind: string, label: string, explanation: string, low: number, high: number, unit: string,
 *   neighbours: number[]}} Defence
 * @typedef {{steps: number, rounds: number, text_characters: number}} Limits
 * @typedef {{models: Model[], defences: Defence[], measures: Measure[], limits: Limits}} Catalogue
 * @typedef {{text: string, difficulty: "easy" | "hard"}} Example
 */
export {};
