// What an answer cost, as a list of names and values; the figures themselves are the server's.

const seconds = (ms) => (ms === null || ms === undefined ? null : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(2)} s`);
const REASONS = { stop: "the model ended it", length: "all its tokens were used", tool_calls: "it calls a tool" };

/** Pairs of a name and a value; what an answer has not is left out. */
export function listReceipt(metrics, reason) {
  const { diffusion, route } = metrics;
  const isCanvas = diffusion.semantics === "canvas";
  return [
    ["Decoder", route.decoder],
    ["Tokens per forward", diffusion.tokens_per_forward.toFixed(2)],
    ["Forwards", String(diffusion.forwards)],
    ["Step budget", isCanvas ? `${diffusion.step_budget} a block${diffusion.budget_hits ? `, spent ${diffusion.budget_hits} ×` : ""}` : null],
    ["Steps of each block", isCanvas && diffusion.denoise_steps.length ? diffusion.denoise_steps.join(", ") : null],
    ["First final text", seconds(metrics.time_to_first_token_ms)],
    ["Generation", seconds(metrics.generation_time_ms)],
    ["Tokens per second", metrics.tokens_per_second?.toFixed(1) ?? null],
    ["Forced by a grammar", diffusion.forced_tokens ? `${diffusion.forced_tokens} tokens` : null],
    ["Drafted, accepted", diffusion.drafted_tokens ? `${diffusion.drafted_tokens}, ${diffusion.accepted_tokens}` : null],
    ["Seed", diffusion.seeds.join(", ")],
    ["Ended because", reason ? (REASONS[reason] ?? reason) : null],
  ].filter(([, value]) => value !== null);
}

export function fillReceipt(section, metrics, reason) {
  const rows = listReceipt(metrics, reason).map(([name, value]) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("dt"), { textContent: name }));
    row.append(Object.assign(document.createElement("dd"), { textContent: value }));
    return row;
  });
  section.querySelector("dl").replaceChildren(...rows);
  section.hidden = false;
}
