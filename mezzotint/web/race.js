// The race panel: one prompt, two decoders, their clocks and receipts, and both replayed side by side.

import { follow } from "/assets/answer.js";
import { RACES } from "/assets/examples.js";
import { readSettings, wire } from "/assets/form.js";
import { fillReceipt } from "/assets/receipt.js";

const PATH = "/v1/chat/completions";
const clock = (ms) => `${(ms / 1000).toFixed(2)} s`;

export function openRace(panel) {
  const form = panel.querySelector("form");
  const lanes = ["left", "right"].map((side) => new Lane(panel.querySelector(".lanes"), form.elements[side]));
  const write = (model) => ({
    model,
    messages: [{ role: "user", content: form.elements.prompt.value }],
    ...readSettings(form),
  });
  wire(form, {
    label: "Race",
    examples: RACES,
    choose: (example) => { form.elements.prompt.value = example.prompt; },
    request: () => ({ path: PATH, body: write(form.elements.left.value) }),
    run: async (signal) => {
      replay.disabled = true;
      lanes.forEach((lane) => lane.clear());
      const runs = lanes.map((lane) => () => lane.run(write(lane.select.value), signal));
      if (form.elements.together.checked) await Promise.all(runs.map((start) => start()));
      else for (const start of runs) await start();
      replay.disabled = false;
      const told = compare(lanes);
      panel.querySelector(".winner").textContent = told;
      return ["Done.", { spoken: ` ${told}` }];
    },
  });
  const replay = Object.assign(document.createElement("button"), { type: "button", textContent: "Replay side by side", className: "replay", disabled: true });
  replay.dataset.do = "replay";
  panel.querySelector(".winner").after(replay);
  replay.addEventListener("click", async () => {
    replay.disabled = true;
    const longest = Math.max(...lanes.map((lane) => lane.ended));
    await Promise.all(lanes.map((lane) => lane.replay(longest)));
    replay.disabled = false;
  });
}

class Lane {
  constructor(place, select) {
    this.select = select;
    this.root = document.createElement("section");
    this.root.className = "lane";
    this.root.append(document.querySelector("#lane").content.cloneNode(true));
    place.append(this.root);
    select.addEventListener("change", () => this.#name());
  }

  clear() {
    this.#name();
    this.history = null;
    this.ended = 0;
    this.root.querySelector(".receipt").hidden = true;
    this.root.classList.remove("won");
    this.#show("", "", 0, 1);
  }

  async run(body, signal) {
    const began = performance.now();
    let isRunning = true;
    const tick = () => {
      if (!isRunning) return;
      this.root.querySelector(".clock").textContent = clock(performance.now() - began);
      requestAnimationFrame(tick);
    };
    tick();
    try {
      this.history = await follow(PATH, body, {
        signal,
        onOpen: () => {},
        onChange: (history) => this.#frame(history, history.frames.length - 1),
      });
      this.ended = performance.now() - began;
      this.#show(this.history.text, "", this.ended, this.ended);
      fillReceipt(this.root.querySelector(".receipt"), this.history.metrics, this.history.reason);
    } finally {
      isRunning = false;
    }
  }

  /** As it went, against a track as long as the slower one took. */
  replay(longest) {
    const began = performance.now();
    return new Promise((resolve) => {
      const tick = () => {
        const now = performance.now() - began;
        const at = this.history.frames.findLastIndex((frame) => frame.at <= now);
        const frame = this.history.frames[at];
        const isOver = now >= this.ended;
        const text = isOver ? this.history.text : (frame?.before ?? "");
        this.#show(text, isOver ? "" : (frame?.draft ?? ""), Math.min(now, this.ended), longest);
        if (now >= longest) return resolve();
        requestAnimationFrame(tick);
      };
      tick();
    });
  }

  #frame(history, at) {
    const frame = history.frames[at];
    if (!frame) return;
    this.root.querySelector(".final").textContent = history.text;
    this.root.querySelector(".draft").textContent = frame.draft;
    const share = frame.budget ? frame.step / frame.budget : 0.5;
    this.root.querySelector(".track i").style.width = `${100 * share}%`;
  }

  #show(text, draft, ms, longest) {
    this.root.querySelector(".final").textContent = text;
    this.root.querySelector(".draft").textContent = draft;
    this.root.querySelector(".clock").textContent = clock(ms);
    this.root.querySelector(".track i").style.width = `${100 * Math.min(1, ms / longest)}%`;
  }

  #name() {
    this.root.querySelector("h3").textContent = this.select.value;
  }
}

function compare(lanes) {
  const [left, right] = lanes;
  const longest = Math.max(left.ended, right.ended);
  lanes.forEach((lane) => { lane.root.querySelector(".track i").style.width = `${(100 * lane.ended) / longest}%`; });
  const [first, second] = left.ended <= right.ended ? [left, right] : [right, left];
  first.root.classList.add("won");
  const times = (second.ended / first.ended).toFixed(1);
  const same = left.history.text === right.history.text ? "Both say the same." : "They do not say the same.";
  return `${first.select.value} was first: ${clock(first.ended)} against ${clock(second.ended)}, ${times} times as fast. ${same}`;
}
