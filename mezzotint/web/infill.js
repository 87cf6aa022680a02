// The infill panel: a document, a span of it to be rewritten, and what came of it.

import { askJson } from "/assets/api.js";
import { DOCUMENTS } from "/assets/examples.js";
import { modelName, wire } from "/assets/form.js";
import { fillReceipt } from "/assets/receipt.js";

const PATH = "/v1/infill";
const QUOTED = 60;

export function openInfill(panel) {
  const form = panel.querySelector("form");
  const field = form.elements.document;
  const after = panel.querySelector(".after");
  let offer = null;

  const request = () => ({ path: PATH, body: write(form) });
  wire(form, {
    label: "Rewrite the selection",
    examples: DOCUMENTS,
    choose: (example) => choose(form, example),
    request,
    run: async (signal) => {
      const { path, body } = request();
      const asked = { start: field.selectionStart, end: field.selectionEnd, was: field.value };
      const answer = await askJson(path, body, { signal });
      offer = { ...asked, text: answer.middles[0].text };
      showOffer(panel, offer);
      fillReceipt(panel.querySelector(".receipt"), answer.metrics, answer.middles[0].finish_reason);
      after.hidden = false;
      return ["Rewritten. Keep it, or leave the document as it was.", { spoken: ` ${offer.text.trim() || "Nothing is to stand there."}` }];
    },
  });

  const settle = (isKept) => {
    if (isKept && field.value === offer.was) field.setRangeText(offer.text, offer.start, offer.end, "select");
    after.hidden = true;
    field.focus();
    tellSpan(form);
  };
  panel.querySelector("[data-do=keep]").addEventListener("click", () => settle(true));
  panel.querySelector("[data-do=drop]").addEventListener("click", () => settle(false));
  field.addEventListener("input", () => { after.hidden = true; });
  for (const event of ["select", "keyup", "mouseup", "input", "selectionchange"]) field.addEventListener(event, () => tellSpan(form));
}

function write(form) {
  const field = form.elements.document;
  const { selectionStart: start, selectionEnd: end, value } = field;
  const blank = { max_tokens: Number(form.elements.most.value) || 8 };
  if (form.elements.hint.value) blank.hint = form.elements.hint.value;
  const document = [value.slice(0, start), blank, value.slice(end)].filter((part) => part !== "");
  const seed = form.elements.seed.value ? { seed: Number(form.elements.seed.value) } : {};
  return { model: modelName(), document, lengths: form.elements.lengths.value, ...seed };
}

function choose(form, example) {
  const field = form.elements.document;
  field.value = example.document;
  form.elements.most.value = example.most;
  const start = example.document.indexOf(example.span);
  field.focus();
  field.setSelectionRange(start, start + example.span.length);
  tellSpan(form);
}

function tellSpan(form) {
  const { selectionStart: start, selectionEnd: end, value } = form.elements.document;
  const span = value.slice(start, end);
  const quoted = span.length > QUOTED ? `${span.slice(0, QUOTED)}…` : span;
  const told = span ? `Selected, to be rewritten: ${end - start} characters` : `Nothing is selected: text is put in at character ${start}.`;
  const place = form.querySelector(".chosen");
  place.replaceChildren(told);
  if (span) place.append(Object.assign(document.createElement("code"), { textContent: quoted }));
}

function showOffer(panel, { start, end, text, was }) {
  const old = Object.assign(document.createElement("del"), { textContent: was.slice(start, end) });
  const fresh = Object.assign(document.createElement("ins"), { textContent: text });
  panel.querySelector(".rewritten").replaceChildren(was.slice(0, start), old, fresh, was.slice(end));
}
