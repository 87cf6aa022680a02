// Draws one frame: the grid of positions, the figures above it, the uncertainty below; what happened lives in history.

import { isControl } from "/assets/history.js";

const SHOWN = { " ": "·", "\n": "↵", "\t": "⇥" };
const BLANKS = 64;
const WORDS = { accepted: "accepted", renoised: "renoised", pinned: "pinned", committed: "committed", beyond: "after the end" };

/** Spaces and breaks made visible, so that every position has something to look at. */
export const show = (piece) =>
  isControl(piece) ? piece.replace(/[<|>]/g, "") : piece.replace(/[ \n\t]/g, (mark) => SHOWN[mark]).replace(/\p{Cc}/gu, "�");

export class CanvasView {
  constructor(root) {
    this.root = root;
    this.cells = [];
    this.bars = [];
    this.plate = root.querySelector(".plate");
  }

  /** history: what the plate shows all steps of; at: which frame is looked at. */
  draw(history, at) {
    const frame = history.frames[at];
    this.#figures(history, frame);
    this.#grid(frame);
    this.#strip(history, frame);
  }

  clear() {
    this.root.querySelectorAll(".figures dd").forEach((cell) => { cell.textContent = "–"; });
    this.root.querySelectorAll(".grid, .bars, .budget").forEach((box) => box.replaceChildren());
    this.cells = [];
    this.bars = [];
    fit(this.root.querySelector(".grid"), this.cells, BLANKS, "span");
    this.cells.forEach((cell) => { cell.className = "cell blank"; });
    this.root.querySelector(".strip").hidden = false;
    this.plate.height = 1;
  }

  #figures(history, frame) {
    const kept = count(frame, "accepted") + count(frame, "pinned");
    const isSettled = frame.isCommitted;
    const rate = history.rate;
    this.#tell("block", frame.isWritten ? "–" : String(frame.block + 1));
    this.#tell("step", frame.budget ? `${frame.step} of ${frame.budget}` : `${frame.step}`);
    this.#tell("accepted", isSettled ? `${count(frame, "committed")} committed` : `${kept} of ${frame.pieces.length}${count(frame, "pinned") ? " pinned" : ""}`);
    this.#tell("entropy", frame.entropy ? `${mean(frame.entropy).toFixed(3)} nats` : "–");
    this.#tell("rate", rate === null ? "–" : rate.toFixed(2));
    const ticks = Array.from({ length: Math.min(frame.budget ?? 0, 128) }, (_, index) => {
      const tick = document.createElement("i");
      tick.className = index < frame.step ? "spent" : "";
      return tick;
    });
    this.root.querySelector(".budget").replaceChildren(...ticks);
  }

  #tell(name, text) {
    this.root.querySelector(`[data-of=${name}]`).textContent = text;
  }

  #grid(frame) {
    const grid = this.root.querySelector(".grid");
    fit(grid, this.cells, frame.pieces.length, "span");
    frame.pieces.forEach((piece, index) => {
      const cell = this.cells[index];
      const state = frame.states[index];
      const control = isControl(piece) ? " control" : "";
      const unsure = frame.entropy ? `, ${frame.entropy[index].toFixed(3)} nats` : "";
      cell.className = `cell ${state === "beyond" ? "committed beyond" : state}${control}`;
      cell.textContent = show(piece);
      cell.title = `${index}: ${JSON.stringify(piece)}, ${WORDS[state]}${unsure}`;
    });
    grid.setAttribute("aria-label", describe(frame));
  }

  #strip(history, frame) {
    const strip = this.root.querySelector(".strip");
    strip.hidden = !frame.entropy;
    if (!frame.entropy) return;
    const box = strip.querySelector(".bars");
    fit(box, this.bars, frame.entropy.length, "i");
    frame.entropy.forEach((nats, index) => {
      this.bars[index].className = frame.states[index];
      this.bars[index].style.height = `${Math.min(100, 4 + 32 * nats)}%`;
    });
    box.setAttribute("aria-label", `Uncertainty of each position: ${mean(frame.entropy).toFixed(3)} nats on average, at most ${Math.max(...frame.entropy).toFixed(3)}`);
    this.#plate(history, frame);
  }

  // One row of pixels a step, one column a position: a small mezzotint of the whole block. Rows of the budget that were
  // not needed stay empty.
  #plate(history, frame) {
    const steps = history.frames.filter((each) => each.block === frame.block && !each.isCommitted && each.entropy);
    const rows = Math.max(steps.length, frame.budget);
    const plate = this.plate;
    plate.width = frame.entropy.length;
    plate.height = rows;
    plate.style.height = `${Math.min(rows * 5, 160)}px`;
    const pen = plate.getContext("2d");
    pen.fillStyle = getComputedStyle(plate).color;
    steps.forEach((each, row) => each.entropy.forEach((nats, column) => {
      pen.globalAlpha = Math.min(1, Math.sqrt(nats / 2.5)) * (each.step <= frame.step ? 1 : 0.18);
      pen.fillRect(column, row, 1, 1);
    }));
    plate.setAttribute("aria-label", `Uncertainty of ${steps.length} steps, which falls from ${mean(steps[0].entropy).toFixed(3)} to ${mean(steps.at(-1).entropy).toFixed(3)} nats`);
  }
}

/** The frame in a sentence, for whoever does not see it. */
export function describe(frame) {
  const parts = Object.keys(WORDS).filter((state) => count(frame, state)).map((state) => `${count(frame, state)} ${WORDS[state]}`);
  const where = frame.budget ? `Block ${frame.block + 1}, step ${frame.step} of ${frame.budget}` : `Piece ${frame.step}, one written after another`;
  const said = (frame.draft || frame.pieces.filter((_, index) => frame.states[index] === "committed").join("")).trim();
  return `${where}: ${parts.join(", ")} of ${frame.pieces.length} positions. It reads: ${said || "nothing yet"}`;
}

const count = (frame, state) => frame.states.filter((each) => each === state).length;
const mean = (numbers) => numbers.reduce((sum, each) => sum + each, 0) / (numbers.length || 1);

function fit(box, cells, length, tag) {
  while (cells.length > length) cells.pop().remove();
  while (cells.length < length) cells.push(box.appendChild(document.createElement(tag)));
}
