// What happened to one answer, a frame for each denoising step and each commit; nothing is drawn here.

const END = /^<(eos|turn\||end_of_turn|pad)>$/;
const CONTROL = /^<\|?[a-z_]+\|?>$/;

export const isControl = (piece) => CONTROL.test(piece);

/**
 * A frame: block, step, budget, pieces (how each token reads), states (accepted, renoised, pinned, committed, beyond),
 * entropy (nats, or null), before (committed text), draft (what may change), at (ms since the question).
 */
export class History {
  /** isHeld: whether a grammar holds the answer, so that what is kept is pinned. */
  constructor({ isHeld = false } = {}) {
    this.isHeld = isHeld;
    this.frames = [];
    this.text = "";
    this.thoughts = "";
    this.metrics = null;
    this.reason = null;
    this.firstAt = null;
    this.tokens = 0;
    this.forwards = 0;
    this.started = performance.now();
  }

  /** Take in one chunk of /v1/chat/completions or /v1/completions. Returns: whether there is something new to see. */
  push(chunk) {
    if (chunk.x_diffusion) this.#draft(chunk.x_diffusion);
    let isNew = Boolean(chunk.x_diffusion || chunk.metrics);
    for (const choice of chunk.choices) {
      const delta = choice.delta ?? { content: choice.text };
      if (delta.reasoning_content) this.#commit(delta.reasoning_content, "thoughts");
      if (delta.content) this.#commit(delta.content, "text");
      isNew ||= Boolean(delta.reasoning_content || delta.content);
      this.reason = choice.finish_reason ?? this.reason;
    }
    if (chunk.metrics) this.metrics = chunk.metrics;
    return isNew;
  }

  /** Tokens for each forward so far; the receipt's own figure once it is there. */
  get rate() {
    if (this.metrics) return this.metrics.diffusion.tokens_per_forward;
    return this.tokens && this.forwards ? this.tokens / this.forwards : null;
  }

  #draft(told) {
    const kept = this.isHeld ? "pinned" : "accepted";
    const pieces = told.pieces;
    const end = pieces.findIndex((piece) => END.test(piece));
    this.forwards += 1;
    this.#add({
      block: told.block, step: told.step, budget: told.step_budget, pieces,
      states: told.accepted.map((is) => (is ? kept : "renoised")),
      entropy: told.entropy,
      draft: pieces.slice(0, end < 0 ? pieces.length : end).join(""),
      isCommitted: false,
    });
  }

  #commit(text, where) {
    const last = this.frames.at(-1);
    this.firstAt ??= performance.now() - this.started;
    this[where] += text;
    if (!last || last.isWritten) return this.#write(text, last);
    if (last.isCommitted) return Object.assign(last, { before: this.text });
    let length = 0;
    const states = last.pieces.map((piece) => {
      length += piece.length;
      return length <= text.length ? "committed" : "beyond";
    });
    this.tokens += states.filter((state) => state === "committed").length;
    this.#add({ ...last, states, draft: "", isCommitted: true });
  }

  // Text that no canvas drafted: of how many tokens and forwards, only the receipt says.
  #write(text, last) {
    const pieces = [...(last?.pieces ?? []), text].slice(-256);
    const states = pieces.map(() => "committed");
    this.#add({ block: 0, step: this.frames.length + 1, budget: null, pieces, states, entropy: null, draft: "", isCommitted: true, isWritten: true });
  }

  #add(frame) {
    this.frames.push({ isWritten: false, ...frame, before: this.text, at: performance.now() - this.started });
  }
}
