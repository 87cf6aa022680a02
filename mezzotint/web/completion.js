// The completion panel: text that goes on from text.

import { follow, sumUp } from "/assets/answer.js";
import { TEXTS } from "/assets/examples.js";
import { addSettings, modelName, readSettings, wire } from "/assets/form.js";
import { Viewer } from "/assets/viewer.js";

const PATH = "/v1/completions";

export function openCompletion(panel) {
  const form = panel.querySelector("form");
  const viewer = new Viewer(panel.querySelector(".viewer"));
  addSettings(form);
  const write = () => ({ model: modelName(), prompt: form.elements.prompt.value, ...readSettings(form) });
  wire(form, {
    label: "Go on",
    examples: TEXTS,
    choose: (example) => { form.elements.prompt.value = example.prompt; },
    request: () => ({ path: PATH, body: write() }),
    run: async (signal) => sumUp(await follow(PATH, write(), {
      signal,
      onOpen: (history) => viewer.open(history),
      onChange: () => viewer.update(),
    })),
  });
}
