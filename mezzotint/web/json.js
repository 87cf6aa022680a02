// Whether a text is JSON, may still become JSON, or cannot; what a schema says of it is the server's to keep.

const TAILS = ["", "null", ":null", '"":null'];
const WORDS = ["true", "false", "null"];

/** Returns: "empty", "whole", "prefix" (could go on to be JSON) or "broken". */
export function judge(text) {
  const given = text.trimStart();
  if (!given) return "empty";
  if (parses(given)) return "whole";
  const { closers, inString } = scan(given);
  const begun = inString ? [finishEscape(given) + '"'] : finishWord(given);
  const could = begun.some((start) => TAILS.some((tail) => parses(start + tail + closers)));
  return could ? "prefix" : "broken";
}

/** A schema's text. Returns: {schema} or {fault}, a sentence. */
export function readSchema(text) {
  if (!text.trim()) return { fault: "No schema yet." };
  try {
    const schema = JSON.parse(text);
    const isSchema = schema !== null && typeof schema === "object" && !Array.isArray(schema);
    return isSchema ? { schema } : { fault: "A schema is a JSON object; write { … }." };
  } catch (error) {
    return { fault: `Not JSON: ${error.message}` };
  }
}

const parses = (text) => {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
};

function scan(text) {
  const open = [];
  let inString = false;
  for (let at = 0; at < text.length; at += 1) {
    const mark = text[at];
    if (inString && mark === "\\") at += 1;
    else if (mark === '"') inString = !inString;
    else if (!inString && (mark === "{" || mark === "[")) open.push(mark === "{" ? "}" : "]");
    else if (!inString && (mark === "}" || mark === "]")) open.pop();
  }
  return { closers: open.reverse().join(""), inString };
}

function finishEscape(text) {
  const [, slashes, hex] = /(\\*)(u[0-9a-fA-F]{0,3})?$/.exec(text);
  if (slashes.length % 2 === 0) return text;
  return hex ? text + "0".repeat(5 - hex.length) : `${text}\\`;
}

function finishWord(text) {
  const [begun] = /[a-z]*$/.exec(text);
  if (/[\d.eE+-]$/.test(text) && !begun.match(/^[a-df-z]/)) return [text, `${text}0`];
  return begun ? WORDS.filter((word) => word.startsWith(begun)).map((word) => text + word.slice(begun.length)) : [text];
}
