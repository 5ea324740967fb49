/** The controls that fold away: fills them with what the server offers, and keeps their labels and hints true. */

import { drawCurve } from "./curve.js";
import { element, find, slide } from "./dom.js";
import { UNDEFENDED, searches } from "./settings.js";

/** @type {Record<string, string>} */
const STRATEGIES = {
  confidence: "Fills in the surest words first, a few in each pass.",
  adaptive: "Fills in whatever is sure enough, so that easy sentences take few passes.",
  sequential: "Fills in from left to right, one word in each pass.",
  euler: "Draws at random at all positions at once, as the diffusion process runs backwards.",
  "euler-remask": "As euler, and masks the least sure words again after each pass.",
  "two-stage": "From left to right first; then decodes the least sure words again.",
  writer: "Writes from left to right, many beginnings at once, and keeps the text that comes closest.",
  surrogate: "Embeds its guesses with the model’s own stand-in for the encoder, and changes those that come closest.",
  guided: "Embeds its guesses, keeps those whose vector is closer to the given one, and changes them again.",
};

/**
 * Where each defence starts: as it is met in practice, or strong enough to be seen.
 *
 * @type {Record<string, number>}
 */
const STRENGTHS = { noise: 0.3, int8: 0, binary: 1, truncation: 0.5, rotation: 1 };

export class Controls {
  /**
   * @param {HTMLFormElement} form
   * @param {import("./types.js").Catalogue} catalogue
   */
  constructor(form, catalogue) {
    this.form = form;
    this.catalogue = catalogue;
    const usual = catalogue.models.find((model) => model.default) ?? catalogue.models[0];
    fill(this.select("model"), catalogue.models.map((model) => [model.name, `${model.name}: reads ${shortName(model.encoder)}`]), usual.name);
    find("defences", HTMLElement).append(
      ...catalogue.defences.map(({ kind, label }) =>
        element("label", {}, element("input", { type: "radio", name: "defence", value: kind, checked: kind === "none" }), element("span", {}, label)),
      ),
    );
    this.input("steps").max = String(catalogue.limits.steps);
    this.input("rounds").max = String(catalogue.limits.rounds);
    find("text", HTMLTextAreaElement).maxLength = catalogue.limits.text_characters;
    this.adaptToModel();
  }

  /** @param {string} name */
  select(name) {
    return /** @type {HTMLSelectElement} */ (this.form.elements.namedItem(name));
  }

  /** @param {string} name */
  input(name) {
    return /** @type {HTMLInputElement} */ (this.form.elements.namedItem(name));
  }

  get model() {
    const name = this.select("model").value;
    return /** @type {import("./types.js").Model} */ (this.catalogue.models.find((model) => model.name === name));
  }

  /** Offers what the chosen model can do. */
  adaptToModel() {
    const { encoder, parameters, dimension, strategies, guided, languages, lower_case, canvas_length } = this.model;
    const blind = strategies.filter((name) => name !== "guided");
    const offered = guided ? [...blind, "guided"] : blind;
    fill(this.select("strategy"), blind.map((name) => [name, name]), blind.includes("surrogate") ? "surrogate" : "confidence");
    fill(this.select("compare"), [["", "nothing"], ...offered.map((name) => [name, name]), [UNDEFENDED, "the undefended vector"]], "");
    this.allow("attacker", "guided", guided);
    this.allow("mode", "text", guided);
    const writes = `It writes ${languages.length ? languages.join(", ") : "an unknown language"}${lower_case ? ", in lower case" : ""}, up to ${canvas_length} tokens.`;
    const millions = `${(parameters / 1e6).toFixed(parameters < 1e7 ? 1 : 0)} million parameters`;
    find("model-note", HTMLElement).textContent = `Reads vectors of ${encoder} (${dimension} numbers). ${writes} ${millions}.`;
  }

  /** @param {import("./settings.js").Settings} settings */
  refresh(settings) {
    const guided = settings.attacker === "guided";
    const strategy = guided ? "guided" : settings.strategy;
    find("rounds-control", HTMLElement).hidden = !searches(strategy) && !searches(settings.compare);
    find("strategy-control", HTMLElement).hidden = guided;
    for (const name of ["steps", "rounds", "strength"]) slide(this.input(name), this.input(name).value);
    for (const name of ["steps", "rounds"]) find(`${name}-value`, HTMLOutputElement).value = this.input(name).value;
    find("strategy-hint", HTMLElement).textContent = STRATEGIES[strategy] ?? "";
    const passes = strategy === "writer" ? "token by token" : `${settings.steps} passes`;
    const length = searches(strategy) ? `${settings.rounds} rounds` : passes;
    const versus = { "": "", [UNDEFENDED]: ", beside the undefended vector" }[settings.compare] ?? `, beside ${settings.compare}`;
    find("method-choice", HTMLElement).textContent = `${strategy}, ${length}${versus}`;
    this.refreshDefence(settings);
  }

  suggestStrength() {
    this.input("strength").value = String(STRENGTHS[this.input("defence").value] ?? 0.5);
  }

  /** @param {import("./settings.js").Settings} settings */
  refreshDefence({ defence: kind, strength }) {
    const defence = this.catalogue.defences.find((defence) => defence.kind === kind);
    if (!defence) return;
    const { label, explanation, low, high, unit } = defence;
    const amount = quantity(low + strength * (high - low), unit);
    const adjustable = low !== high;
    find("strength-control", HTMLElement).hidden = !adjustable;
    this.offerUndefended(kind !== "none");
    find("strength-value", HTMLOutputElement).value = amount;
    find("defence-hint", HTMLElement).textContent = explanation;
    find("curve-panel", HTMLElement).hidden = kind === "none";
    drawCurve(defence, strength);
    find("defence-choice", HTMLElement).textContent = kind === "none" ? "no defence yet" : adjustable ? `${label}, ${amount}` : label;
  }

  /** @param {boolean} defended whether there is a defence to do without */
  offerUndefended(defended) {
    const compare = this.select("compare");
    const option = [...compare.options].find((option) => option.value === UNDEFENDED);
    if (option) option.disabled = !defended;
    if (!defended && compare.value === UNDEFENDED) compare.value = "";
  }

  /**
   * Without the encoder there are no sentences to embed and no search.
   *
   * @param {string} name
   * @param {string} value
   * @param {boolean} allowed
   */
  allow(name, value, allowed) {
    for (const choice of /** @type {Iterable<HTMLInputElement>} */ (this.form.querySelectorAll(`input[name=${name}]`))) {
      if (choice.value === value) choice.disabled = !allowed;
      else if (!allowed) choice.checked = true;
    }
  }
}

/**
 * Offers other options and keeps the chosen one, if it is still there.
 *
 * @param {HTMLSelectElement} select
 * @param {string[][]} options value and label of each
 * @param {string} usual
 */
function fill(select, options, usual) {
  const chosen = select.value;
  select.replaceChildren(...options.map(([value, label]) => element("option", { value }, label)));
  select.value = options.some(([value]) => value === chosen) ? chosen : usual;
}

/**
 * @param {number} value
 * @param {string} unit
 */
function quantity(value, unit) {
  return unit.startsWith("of ") ? `${Math.round(100 * value)} % ${unit}` : `${Number(value.toPrecision(2))} ${unit}`.trim();
}

/** @param {string} encoder its name without its organisation */
const shortName = (encoder) => encoder.split("/").at(-1) ?? encoder;
