/** The link that reproduces what is set. The sentence is in it only when the box is ticked, a vector never. */

import { find } from "./dom.js";

const link = find("share-link", HTMLInputElement);
const tick = find("share-text", HTMLInputElement);
const copy = find("share-copy", HTMLButtonElement);

/** @param {(withText: boolean) => string} fragment */
export function offerSharing(fragment) {
  const write = () => {
    link.value = location.origin + location.pathname + fragment(tick.checked);
    copy.textContent = "Copy";
  };
  find("share", HTMLElement).addEventListener("beforetoggle", () => {
    tick.checked = false;
    write();
  });
  tick.addEventListener("change", (event) => {
    event.stopPropagation();
    write();
  });
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(link.value);
    copy.textContent = "Copied";
  });
}
