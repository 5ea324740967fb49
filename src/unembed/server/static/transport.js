/** The player's buttons and the keys that do the same. */

import { find, slide } from "./dom.js";
import { Player } from "./player.js";

const play = find("play", HTMLButtonElement);
const scrub = find("scrub", HTMLInputElement);
const number = find("frame-number", HTMLOutputElement);
const speed = find("speed", HTMLSelectElement);

/**
 * @param {(player: Player) => void} onFrame
 * @returns {Player}
 */
export function connectTransport(onFrame) {
  const player = new Player((player) => {
    const last = Math.max(0, player.length - 1);
    play.disabled = scrub.disabled = last === 0;
    play.setAttribute("aria-label", player.playing ? "Pause" : "Play");
    play.classList.toggle("playing", player.playing);
    scrub.max = String(last);
    slide(scrub, player.index);
    scrub.setAttribute("aria-valuetext", `Pass ${player.index} of ${last}`);
    number.value = last ? `${player.index} / ${last}` : "";
    onFrame(player);
  }, matchMedia("(prefers-reduced-motion: reduce)"));

  play.addEventListener("click", () => player.toggle());
  scrub.addEventListener("input", () => player.seek(Number(scrub.value)));
  speed.addEventListener("change", () => (player.speed = Number(speed.value)));
  // Only where the passes have the focus: elsewhere these keys scroll the page.
  find("lanes", HTMLElement).addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const action = {
      ArrowLeft: () => player.seek(player.index - 1),
      ArrowRight: () => player.seek(player.index + 1),
      Home: () => player.seek(0),
      End: () => player.seek(player.length - 1),
      " ": () => player.toggle(),
    }[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  return player;
}
