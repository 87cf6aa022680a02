// One answer on the page: its text, its canvas, the scrubber that replays it, its receipt; requests are made elsewhere.

import { CanvasView } from "/assets/canvas.js";
import { fillReceipt } from "/assets/receipt.js";

const PACE_MS = 260;

/** verdict: (text, {isEnded, reason}) => [a sentence on what is shown, its kind], or null for none. */
export class Viewer {
  constructor(root) {
    root.replaceChildren(document.querySelector("#viewer").content.cloneNode(true));
    this.root = root;
    this.canvas = new CanvasView(root);
    this.range = root.querySelector("input[type=range]");
    this.button = root.querySelector("[data-do=play]");
    this.history = null;
    this.verdict = () => null;
    this.range.addEventListener("input", () => this.#look());
    this.button.addEventListener("click", () => (this.timer ? this.#pause() : this.#play()));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.redraw());
    document.addEventListener("themechange", () => this.redraw());
    this.button.disabled = true;
    this.canvas.clear();
  }

  /** Show a new answer from its beginning. */
  open(history) {
    this.#pause();
    this.history = history;
    this.isFollowing = true;
    this.canvas.clear();
    this.range.max = this.range.value = 0;
    this.range.disabled = this.button.disabled = true;
    this.root.querySelector("output").textContent = "–";
    this.root.querySelector(".hint").hidden = true;
    this.root.querySelector(".receipt").hidden = true;
    this.#say(null);
    if (matchMedia("(max-width: 60rem)").matches) this.root.scrollIntoView();
  }

  /** Something was added to the answer. */
  update() {
    const last = this.history.frames.length - 1;
    if (this.history.metrics) fillReceipt(this.root.querySelector(".receipt"), this.history.metrics, this.history.reason);
    if (last < 0) return this.#say(null);
    this.range.max = last;
    this.range.disabled = this.button.disabled = last < 1;
    if (this.isFollowing && !this.timer) this.range.value = last;
    this.redraw();
  }

  redraw() {
    if (!this.history?.frames.length) return;
    const at = Number(this.range.value);
    const frame = this.history.frames[at];
    const told = `${at + 1} of ${this.history.frames.length}`;
    this.canvas.draw(this.history, at);
    this.range.setAttribute("aria-valuetext", `${told}: ${frame.isCommitted ? "committed" : `step ${frame.step}`}`);
    this.root.querySelector("output").textContent = told;
    this.#say(frame, at === this.history.frames.length - 1);
  }

  // Looked back at, a step shows what was final then; at the end it is all there is.
  #say(frame, isLast = true) {
    const thoughts = this.root.querySelector(".thoughts");
    thoughts.hidden = !this.history.thoughts;
    thoughts.textContent = this.history.thoughts;
    const final = frame && !isLast ? frame.before : this.history.text;
    const draft = frame?.draft ?? "";
    this.root.querySelector(".final").textContent = final;
    this.root.querySelector(".draft").textContent = draft;
    const place = this.root.querySelector("[data-of=answer]");
    const told = this.verdict(final + draft, { isEnded: Boolean(isLast && this.history.metrics), reason: this.history.reason });
    place.hidden = !told;
    [place.textContent, place.dataset.kind] = told ?? ["", ""];
  }

  #look() {
    this.#pause();
    this.isFollowing = this.range.value === this.range.max;
    this.redraw();
  }

  #play() {
    if (this.range.value === this.range.max) this.range.value = 0;
    this.button.textContent = "Pause";
    this.timer = setInterval(() => {
      if (this.range.value === this.range.max) return this.#pause();
      this.range.value = Number(this.range.value) + 1;
      this.redraw();
    }, PACE_MS);
    this.redraw();
  }

  #pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.button.textContent = "Replay";
  }
}
