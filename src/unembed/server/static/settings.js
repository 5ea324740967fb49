/**
 * What is set on the page, and how the address holds it. Holds names and choices, never a sentence or a vector, unless
 * a link is asked for that has the sentence in it.
 *
 * @typedef {{mode: "text" | "vector", model: string, attacker: "blind" | "guided", strategy: string, steps: number,
 *   rounds: number, compare: string, defence: string, strength: number}} Settings
 * @typedef {{text: string} | {vector: number[]}} Given
 */

/** Value of `compare` for the same strategy on the vector without its defence. */
export const UNDEFENDED = "undefended";

const NAMES = new Set(["mode", "model", "attacker", "strategy", "steps", "rounds", "compare", "defence", "strength"]);

/**
 * @param {HTMLInputElement} slider
 * @param {string} value
 */
function within(slider, value) {
  return value.trim() !== "" && Number(value) >= Number(slider.min) && Number(value) <= Number(slider.max);
}

/**
 * @param {HTMLFormElement} form
 * @returns {Settings}
 */
export function readSettings(form) {
  const values = Object.fromEntries(new FormData(form));
  return /** @type {any} */ ({
    ...values,
    steps: Number(values.steps),
    rounds: Number(values.rounds),
    strength: Number(values.strength),
  });
}

/**
 * Sets what the fragment of an address names; what it does not name, or names wrongly, stays as it is.
 *
 * @param {HTMLFormElement} form
 * @param {string} fragment
 * @returns {{text: string | null, example: number | null}} what to start with, if the address says
 */
export function applyFragment(form, fragment) {
  const values = new URLSearchParams(fragment.replace(/^#/, ""));
  for (const [name, value] of values) {
    const field = form.elements.namedItem(name);
    if (!NAMES.has(name)) continue; // elements are found by their id, too
    if (field instanceof HTMLInputElement && field.type === "range" && !within(field, value)) continue;
    if (field instanceof HTMLSelectElement && ![...field.options].some((option) => option.value === value)) continue;
    if (field instanceof RadioNodeList || field instanceof HTMLSelectElement || field instanceof HTMLInputElement) {
      field.value = value;
    }
  }
  const example = values.get("example");
  return { text: values.get("text"), example: example === null ? null : Number(example) };
}

/**
 * @param {Settings} settings
 * @param {Settings} usual what need not be said
 * @param {Record<string, string>} more
 */
export function toFragment(settings, usual, more) {
  const changed = Object.entries(settings).filter(([name, value]) => value !== usual[/** @type {keyof Settings} */ (name)]);
  const values = new URLSearchParams([...changed.map(([name, value]) => [name, String(value)]), ...Object.entries(more)]);
  return values.size ? `#${values}` : "";
}

/** @param {Settings} settings */
export function defenceOf(settings) {
  return settings.defence === "none" ? null : { kind: settings.defence, strength: settings.strength, seed: 0 };
}

/**
 * Whether a strategy changes texts and compares their vectors with the one given.
 *
 * @param {string} strategy
 */
export function searches(strategy) {
  return strategy === "guided" || strategy === "surrogate";
}

/**
 * The requests of one run: one, or two to compare.
 *
 * @param {Settings} settings
 * @param {Given} given
 * @returns {{label: string, body: object}[]}
 */
export function requestsFor(settings, given) {
  const own = settings.attacker === "guided" ? "guided" : settings.strategy;
  const defence = defenceOf(settings);
  /** @param {string} label @param {string} strategy @param {object | null} defence */
  const request = (label, strategy, defence) => {
    const rounds = searches(strategy) ? { rounds: settings.rounds } : {};
    return { label, body: { ...given, model: settings.model, strategy, steps: settings.steps, ...rounds, defence } };
  };
  if (!settings.compare) return [request(own, own, defence)];
  if (settings.compare !== UNDEFENDED) return [request(own, own, defence), request(settings.compare, settings.compare, defence)];
  return [request("defended", own, defence), request("undefended", own, null)];
}
