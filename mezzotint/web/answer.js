// One question asked and its answer shown as it comes; the bodies of questions are written in the panels.

import { stream } from "/assets/api.js";
import { History } from "/assets/history.js";

/** Ask, and tell `onChange` of every frame. Returns: the history, whole. Raises: Refusal, AbortError. */
export async function follow(path, body, { signal, isHeld, onOpen, onChange }) {
  const history = new History({ isHeld });
  onOpen(history);
  const asked = { ...body, x_diffusion: { ...body.x_diffusion, drafts: true } };
  for await (const chunk of stream(path, asked, { signal })) {
    if (history.push(chunk)) onChange(history);
  }
  return history;
}

/** How it ended, as the status line tells it; the answer itself is only read aloud there. */
export function sumUp(history) {
  const { diffusion } = history.metrics;
  const cut = history.reason === "length" ? " It was cut: all its tokens were used." : "";
  const said = history.text.trim();
  const told = `Done: ${diffusion.forwards} forwards, ${diffusion.tokens_per_forward.toFixed(2)} tokens each.${cut}`;
  return [told, { spoken: ` Answer: ${said || "nothing"}` }];
}
