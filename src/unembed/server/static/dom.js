/** Makes and finds elements. Strings only ever become text: nothing here parses markup. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} node
 * @param {Record<string, string | number | boolean>} attributes `true` sets an empty attribute, `false` none
 * @param {(Node | string)[]} children
 * @returns {T}
 */
function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children);
  return node;
}

/**
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean>} [attributes]
 * @param {...(Node | string)} children
 */
export function element(tag, attributes = {}, ...children) {
  return dress(document.createElement(tag), attributes, children);
}

/**
 * @param {string} tag
 * @param {Record<string, string | number | boolean>} [attributes]
 * @param {...(Node | string)} children
 */
export function drawing(tag, attributes = {}, ...children) {
  return dress(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * The element of this id, which the page must have.
 *
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export function find(id, kind) {
  const node = document.getElementById(id);
  if (!(node instanceof kind)) throw new Error(`The page has no ${kind.name} #${id}.`);
  return node;
}

/**
 * Moves a slider; the style sheet draws how far it is.
 *
 * @param {HTMLInputElement} slider
 * @param {number | string} value
 */
export function slide(slider, value) {
  slider.value = String(value);
  const [low, high] = [Number(slider.min), Number(slider.max)];
  slider.style.setProperty("--share", String(high > low ? (Number(slider.value) - low) / (high - low) : 0));
}
