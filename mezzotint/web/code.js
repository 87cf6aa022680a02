// A request as text that runs elsewhere: a curl command, a Python program that needs no package.

const quote = (text) => `'${text.replaceAll("'", "'\\''")}'`;

export function writeCurl(origin, path, body, hasKey) {
  const lines = [`curl ${quote(origin + path)}`, "-H 'content-type: application/json'"];
  if (hasKey) lines.push('-H "authorization: Bearer $MEZZOTINT_API_KEY"');
  lines.push(`-d ${quote(JSON.stringify(body))}`);
  return lines.join(" \\\n  ");
}

export function writePython(origin, path, body, hasKey) {
  const key = hasKey ? ', "authorization": f"Bearer {os.environ[\'MEZZOTINT_API_KEY\']}"' : "";
  return `import json
${hasKey ? "import os\n" : ""}import urllib.request

body = ${literal(body, 0)}
headers = {"content-type": "application/json"${key}}
request = urllib.request.Request(${literal(origin + path)}, json.dumps(body).encode(), headers)
with urllib.request.urlopen(request) as response:
    answer = json.load(response)
print(${RESULT[path]})
print(answer["metrics"]["diffusion"]["tokens_per_forward"], "tokens per forward")
`;
}

const RESULT = {
  "/v1/chat/completions": 'answer["choices"][0]["message"]["content"]',
  "/v1/completions": 'answer["choices"][0]["text"]',
  "/v1/infill": 'answer["text"]',
};

function literal(value, depth = 0) {
  const next = "    ".repeat(depth + 1);
  const end = "    ".repeat(depth);
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const items = isList
    ? value.map((each) => next + literal(each, depth + 1))
    : Object.entries(value).map(([name, each]) => `${next}${JSON.stringify(name)}: ${literal(each, depth + 1)}`);
  const [open, close] = isList ? "[]" : "{}";
  return items.length ? `${open}\n${items.join(",\n")},\n${end}${close}` : open + close;
}
