// Light, dark, or as the system has it; what that looks like lives in the style sheet.

const KEY = "mezzotint-theme";
const NEXT = { auto: "light", light: "dark", dark: "auto" };

export function openTheme(button) {
  const set = (theme) => {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    localStorage.setItem(KEY, theme);
    document.dispatchEvent(new Event("themechange"));
  };
  const kept = localStorage.getItem(KEY);
  let theme = kept in NEXT ? kept : "auto";
  set(theme);
  button.addEventListener("click", () => {
    theme = NEXT[theme];
    set(theme);
  });
}
