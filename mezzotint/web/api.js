// What is asked of the server: JSON, streams of events, the key, and errors in words; nothing is drawn here.

const KEY = "mezzotint-key";

/** An error of the server, in its own words. */
export class Refusal extends Error {
  constructor(status, told, param) {
    super(told);
    this.status = status;
    this.param = param;
  }
}

export const hasKey = () => Boolean(sessionStorage.getItem(KEY));

/** GET or POST. Asks for a key once where the server wants one. Raises: Refusal. */
export async function ask(path, body, { signal } = {}) {
  for (;;) {
    const response = await send(path, body, signal);
    if (response.ok) return response;
    const error = await read(response);
    if (response.status !== 401 || !(await askKey(hasKey()))) throw error;
  }
}

export const askJson = async (path, body, options) => (await ask(path, body, options)).json();

/** The chunks of a stream, as they come. Raises: Refusal, also for one that comes within the stream. */
export async function* stream(path, body, options) {
  const response = await ask(path, { ...body, stream: true }, options);
  for await (const data of events(response.body)) {
    if (data === "[DONE]") return;
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Refusal(200, chunk.error.message, chunk.error.param);
    yield chunk;
  }
}

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const data = part.split("\n").filter((line) => line.startsWith("data: "));
        if (data.length) yield data.map((line) => line.slice(6)).join("\n");
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function send(path, body, signal) {
  const headers = body === undefined ? {} : { "content-type": "application/json" };
  const key = sessionStorage.getItem(KEY);
  if (key) headers.authorization = `Bearer ${key}`;
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  try {
    return await fetch(path, { ...options, headers, signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server cannot be reached. Is it still running?");
  }
}

async function read(response) {
  const told = await response.json().catch(() => ({}));
  const { message, param } = told.error ?? {};
  const wait = response.headers.get("retry-after");
  const words = message ?? `The server answered with status ${response.status}.`;
  return new Refusal(response.status, wait ? `${words} Try again in ${wait} s.` : words, param);
}

/** Returns: whether a key was given. */
function askKey(wasWrong) {
  const dialog = document.querySelector("#key");
  const field = dialog.querySelector("input");
  dialog.querySelector("h2").textContent = wasWrong ? "That key is not known here" : "This server asks for a key";
  field.value = "";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const given = dialog.returnValue === "ok" && field.value.trim();
      if (given) sessionStorage.setItem(KEY, given);
      resolve(Boolean(given));
    }, { once: true });
  });
}
