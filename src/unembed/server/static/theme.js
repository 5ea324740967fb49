/** Light, dark, or as the system has it; remembered in this browser. Loaded first, so that nothing flashes. */

const KEY = "unembed-theme";
const CHOICES = ["system", "light", "dark"];

/** @param {string} choice */
function apply(choice) {
  document.documentElement.dataset.theme = choice;
  const button = document.getElementById("theme");
  if (!button) return;
  button.setAttribute("aria-label", `Colours: ${choice === "system" ? "as the system" : choice}`);
  button.title = button.getAttribute("aria-label") ?? "";
}

apply(localStorage.getItem(KEY) ?? "system");
document.addEventListener("DOMContentLoaded", () => {
  const root = document.documentElement;
  apply(root.dataset.theme ?? "system");
  document.getElementById("theme")?.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(root.dataset.theme ?? "system") + 1) % CHOICES.length];
    localStorage.setItem(KEY, next);
    apply(next);
  });
});
