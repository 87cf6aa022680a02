// The chat panel: a talk of several turns, held to a schema where one is given.

import { follow, sumUp } from "/assets/answer.js";
import { CHATS } from "/assets/examples.js";
import { addSettings, modelName, readSettings, wire } from "/assets/form.js";
import { judge, readSchema } from "/assets/json.js";
import { Viewer } from "/assets/viewer.js";

const PATH = "/v1/chat/completions";
const VERDICTS = {
  empty: ["The answer has not begun.", "wait"],
  prefix: ["Valid JSON so far.", "wait"],
  broken: ["Not JSON yet: what is renoised may still be anything.", "wait"],
  whole: ["Whole JSON already, not final yet.", "wait"],
};

export function openChat(panel) {
  const form = panel.querySelector("form");
  const viewer = new Viewer(panel.querySelector(".viewer"));
  const turns = [];
  addSettings(form);
  addReset(form, turns);
  watchSchema(form);

  wire(form, {
    label: "Ask",
    examples: CHATS,
    choose: (example) => {
      forget(form, turns);
      form.elements.prompt.value = example.prompt;
      form.elements.held.checked = false;
      if (example.schema) form.elements.schema.value = JSON.stringify(example.schema, null, 2);
      form.elements.schema.dispatchEvent(new Event("input"));
    },
    request: () => ({ path: PATH, body: write(form, turns) }),
    run: async (signal) => {
      const body = write(form, turns);
      const isHeld = Boolean(body.response_format);
      viewer.verdict = isHeld ? tellValidity : () => null;
      const history = await follow(PATH, body, {
        signal,
        isHeld,
        onOpen: (opened) => viewer.open(opened),
        onChange: () => viewer.update(),
      });
      turns.splice(0, turns.length, ...body.messages, { role: "assistant", content: history.text });
      listTurns(form, turns);
      return sumUp(history);
    },
  });
}

// A question asked again with the same words replaces its last answer instead of being asked behind it.
function write(form, turns) {
  const prompt = form.elements.prompt.value;
  const before = turns.at(-2)?.content === prompt ? turns.slice(0, -2) : turns;
  const body = { model: modelName(), messages: [...before, { role: "user", content: prompt }], ...readSettings(form) };
  if (form.elements.held.checked) {
    const { schema, fault } = readSchema(form.elements.schema.value);
    if (fault) throw new Error(`The schema cannot be used. ${fault}`);
    body.response_format = { type: "json_schema", json_schema: { name: "answer", schema } };
  }
  return body;
}

function tellValidity(text, { isEnded, reason }) {
  const found = judge(text);
  if (!isEnded) return VERDICTS[found];
  if (found === "whole") return ["Valid JSON, held to the schema by the server.", "good"];
  return [reason === "length" ? "Cut before its end, so not whole JSON: give it more tokens." : "Not JSON.", "bad"];
}

function watchSchema(form) {
  const verdict = form.querySelector("[data-of=schema]");
  const badge = form.querySelector("[data-of=switch]");
  const look = () => {
    const { fault } = readSchema(form.elements.schema.value);
    verdict.textContent = fault ?? "A schema in JSON.";
    verdict.dataset.kind = fault ? "bad" : "good";
    badge.textContent = form.elements.held.checked ? (fault ? "on, but no schema" : "on") : "off";
    badge.dataset.kind = form.elements.held.checked ? (fault ? "bad" : "good") : "";
  };
  form.elements.schema.addEventListener("input", look);
  form.elements.held.addEventListener("change", look);
  look();
}

function addReset(form, turns) {
  form.querySelector("[data-do=reset]").addEventListener("click", () => {
    forget(form, turns);
    form.elements.prompt.value = "";
    form.elements.prompt.focus();
  });
}

function forget(form, turns) {
  turns.length = 0;
  listTurns(form, turns);
}

// The last question stays in its field, to be changed or asked again, and its answer in the viewer.
function listTurns(form, turns) {
  const items = turns.slice(0, -2).map(({ role, content }) => {
    const item = document.createElement("li");
    item.className = role;
    item.append(Object.assign(document.createElement("b"), { textContent: role === "user" ? "You" : "Answer" }));
    item.append(Object.assign(document.createElement("span"), { textContent: content }));
    return item;
  });
  form.querySelector(".turns").replaceChildren(...items);
  form.querySelector(".going").hidden = !turns.length;
}
