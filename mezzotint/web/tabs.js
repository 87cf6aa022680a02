// Tabs by mouse and by arrow keys; what stands in their panels is not known here.

const STEPS = { ArrowRight: 1, ArrowLeft: -1 };

export function openTabs(list) {
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const choose = (chosen, isFocused = true) => {
    for (const tab of tabs) {
      const is = tab === chosen;
      tab.setAttribute("aria-selected", String(is));
      tab.tabIndex = is ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !is;
    }
    history.replaceState(null, "", `#${chosen.id.replace("tab-", "")}`);
    if (isFocused) chosen.focus();
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(document.activeElement);
    const edge = { Home: 0, End: tabs.length - 1 }[event.key];
    const next = edge ?? (event.key in STEPS ? (at + STEPS[event.key] + tabs.length) % tabs.length : null);
    if (at < 0 || next === null) return;
    event.preventDefault();
    choose(tabs[next]);
  });
  const named = tabs.find((tab) => tab.id === `tab-${location.hash.slice(1)}`);
  if (named) choose(named, false);
}
