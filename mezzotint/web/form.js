// What every form here has: examples, settings, run and stop, copy as code, and errors in words.

import { hasKey } from "/assets/api.js";
import { writeCurl, writePython } from "/assets/code.js";

const ACTIONS = [
  ["run", "Run", "submit"],
  ["stop", "Stop", "button"],
  ["curl", "curl", "button"],
  ["python", "Python", "button"],
];

/** Tell the status line, which is read aloud. kind: "error" for what went wrong. spoken: what is on the page anyway. */
export function tell(text, { kind = "", spoken = "" } = {}) {
  const status = document.querySelector("#status");
  status.replaceChildren(text, Object.assign(document.createElement("span"), { className: "spoken", textContent: spoken }));
  status.dataset.kind = kind;
}

/**
 * Give a form its buttons.
 * request: () => {path, body}, as it would be asked now; run: (signal) => [how it ended, {spoken}].
 */
export function wire(form, { label, request, run, examples = [], choose }) {
  const buttons = addButtons(form, label);
  let running = null;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) return;
    running = new AbortController();
    buttons.stop.disabled = false;
    buttons.run.disabled = true;
    tell("Running …");
    try {
      tell(...(await run(running.signal)));
    } catch (error) {
      tell(...explain(error));
    } finally {
      running.abort(); // where one of several failed, the others are not awaited any longer
      buttons.stop.disabled = true;
      buttons.run.disabled = false;
      running = null;
    }
  });
  buttons.stop.addEventListener("click", () => running?.abort());
  buttons.curl.addEventListener("click", () => copy("curl", writeCurl, request));
  buttons.python.addEventListener("click", () => copy("Python", writePython, request));
  form.closest(".panel").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
    if (event.key === "Escape") running?.abort();
  });
  addExamples(form, examples, choose);
}

/** The settings of a form as options of a request; what is left empty is the model's to say. */
export function readSettings(form) {
  const options = {};
  for (const name of ["max_tokens", "temperature", "seed"]) {
    if (form.elements[name]?.value) options[name] = Number(form.elements[name].value);
  }
  if (form.elements.steps?.value) options.x_diffusion = { steps: Number(form.elements.steps.value) };
  return options;
}

export function addSettings(form) {
  form.querySelector(".settings").append(document.querySelector("#settings").content.cloneNode(true));
}

export const modelName = () => document.querySelector("#model").value;

function addButtons(form, label) {
  const place = form.querySelector(".actions");
  const copies = Object.assign(document.createElement("span"), { className: "copies", textContent: "Copy as" });
  const buttons = {};
  for (const [name, text, type] of ACTIONS) {
    const button = Object.assign(document.createElement("button"), { type, textContent: name === "run" ? label : text });
    const isCopy = name === "curl" || name === "python";
    button.dataset.do = name;
    button.className = isCopy ? "quiet" : name === "run" ? "strong" : "";
    if (isCopy) button.setAttribute("aria-label", `Copy as ${text}`);
    buttons[name] = (isCopy ? copies : place).appendChild(button);
  }
  place.append(copies);
  buttons.stop.disabled = true;
  return buttons;
}

function addExamples(form, examples, choose) {
  for (const example of examples) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: example.name, className: "quiet" });
    button.addEventListener("click", () => choose(example));
    form.querySelector(".examples").append(button);
  }
}

async function copy(name, write, request) {
  let text;
  try {
    const { path, body } = request();
    text = write(location.origin, path, body, hasKey());
  } catch (error) {
    return tell(error.message, { kind: "error" });
  }
  try {
    await navigator.clipboard.writeText(text);
    tell(`Copied as ${name}.`);
  } catch {
    // Without https a browser has no clipboard for us; the text is shown instead.
    const dialog = document.querySelector("#code");
    const field = dialog.querySelector("textarea");
    field.value = text;
    dialog.showModal();
    field.select();
  }
}

function explain(error) {
  if (error.name === "AbortError") return ["Stopped."];
  return [error.message || "Something went wrong.", { kind: "error" }];
}
