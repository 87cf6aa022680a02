// The playground's door: tabs, theme, models, and a panel for each thing to try.

import { askJson } from "/assets/api.js";
import { openChat } from "/assets/chat.js";
import { openCompletion } from "/assets/completion.js";
import { CHATS, DOCUMENTS, RACES, TEXTS } from "/assets/examples.js";
import { tell } from "/assets/form.js";
import { openInfill } from "/assets/infill.js";
import { openRace } from "/assets/race.js";
import { openTabs } from "/assets/tabs.js";
import { openTheme } from "/assets/theme.js";

const panel = (name) => document.querySelector(`#panel-${name}`);
const field = (name, element) => panel(name).querySelector("form").elements[element];

openTheme(document.querySelector("#theme"));
openTabs(document.querySelector("[role=tablist]"));
openChat(panel("chat"));
openCompletion(panel("completion"));
openInfill(panel("infill"));
openRace(panel("race"));

field("chat", "prompt").value = CHATS[0].prompt;
field("chat", "schema").value = JSON.stringify(CHATS[0].schema, null, 2);
field("chat", "schema").dispatchEvent(new Event("input"));
field("completion", "prompt").value = TEXTS[0].prompt;
field("race", "prompt").value = RACES[0].prompt;
const [first] = DOCUMENTS;
field("infill", "document").value = first.document;
const start = first.document.indexOf(first.span);
field("infill", "document").setSelectionRange(start, start + first.span.length);
field("infill", "document").dispatchEvent(new Event("input"));

try {
  const { data } = await askJson("/v1/models");
  const names = data.map(({ id }) => id);
  const selects = [document.querySelector("#model"), field("race", "left"), field("race", "right")];
  for (const select of selects) select.replaceChildren(...names.map((name) => new Option(name, name)));
  field("race", "left").value = names.find((name) => name.endsWith(":diffusion")) ?? names[0];
  field("race", "right").value = names.find((name) => name.endsWith(":ar")) ?? names.at(-1);
  for (const side of ["left", "right"]) field("race", side).dispatchEvent(new Event("change"));
} catch (error) {
  tell(error.message, { kind: "error" });
}
document.documentElement.dataset.ready = "yes";
