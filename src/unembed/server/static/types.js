/**
 * The shapes that the server answers with, for the type comments of the other modules. Holds no code.
 *
 * @typedef {{text: string, joined: boolean, masked: boolean, changed: boolean, confidence: number}} Token
 * @typedef {{pass: number, mask_rate: number, score: number | null, texts_embedded: number, tokens: Token[]}} Step
 * @typedef {{edges: number[], counts: number[]}} Histogram
 * @typedef {{dimension: number, norm: number, minimum: number, maximum: number, mean: number, entropy: number,
 *   histogram: Histogram}} Statistics
 * @typedef {{text: string, fate: "same" | "near" | "lost" | null}} ShownWord
 * @typedef {{words: ShownWord[], same: number, near: number, without_vector: {text: string, found: number},
 *   leaks: {kind: string, name: string, text: string}[]}} Headline
 * @typedef {{level: "close" | "rough" | "noise" | "unknown", meaning: string, reason: string}} Reliability
 * @typedef {{text: string, tokens: string[], cut: boolean, notices: string[]}} Reference
 * @typedef {{name: string, label: string, meaning: string, format: "share" | "cosine" | "number", hit: boolean}} Measure
 * @typedef {{id: string, model: string, words: ShownWord[], length: number | null, statistics: Statistics, vector: number[],
 *   reference: Reference | null}} Start
 * @typedef {{text: string, strategy: string, passes: number, milliseconds: number, score: number,
 *   cosine: number | null, words: ShownWord[], headline: Headline | null, reliability: Reliability, encoder_calls: number, surrogate_calls: number, reference: Reference | null, measures: Record<string, number> | null,
 *   statistics: Statistics, warnings: string[], notices?: string[], model: string}} Result
 * @typedef {{position: number, seconds: number | null}} Queued
 * @typedef {{name: string, identity: string, encoder: string, languages: string[], lower_case: boolean, dimension: number, canvas_length: number, strategies: string[],
 *   guided: boolean, parameters: number, default: boolean}} Model
 * @typedef {{kind: string, label: string, explanation: string, low: number, high: number, unit: string,
 *   neighbours: number[], naive: number[], adaptive: number[]}} Defence
 * @typedef {{steps: number, rounds: number, text_characters: number, batch: number}} Limits
 * @typedef {{models: Model[], defences: Defence[], measures: Measure[], limits: Limits}} Catalogue
 * @typedef {{text: string, difficulty: "easy" | "hard"}} Example
 */
export {};
