// Uses the playground as a person would, in headless Chromium, and tells of each check in a line of JSON.
//
//   node check.mjs URL FOLDER_OF_PLAYWRIGHT CHROMIUM FOLDER_FOR_SCREENSHOTS

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

import { findFaint } from "./contrast.mjs";

const [, , url, installed, executablePath, shots] = process.argv;
const { chromium } = createRequire(resolve(installed, "package.json"))("playwright-core");
const FLAGS = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync";
const DONE_MS = 60_000;
const TABS = ["chat", "completion", "infill", "race"];

const browser = await chromium.launch({ executablePath, args: FLAGS.split(" ") });
const complaints = [];
const foreign = [];

async function open(options = {}, prepare = async () => {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: url });
  await prepare(context);
  const page = await context.newPage();
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && complaints.push(message.text()));
  page.on("pageerror", (error) => complaints.push(error.stack));
  page.on("request", (request) => request.url().startsWith(`${url}/`) || foreign.push(request.url()));
  await page.goto(url);
  return page;
}

const ready = (page) => page.waitForSelector("html[data-ready]");
const status = (page) => page.textContent("#status");
const ended = (page) => page.waitForFunction(() => !document.querySelector("#status").textContent.startsWith("Running"), null, { timeout: DONE_MS });
const visit = (page, name) => page.click(`#tab-${name}`);

async function run(page, name) {
  await page.click(`#panel-${name} [data-do=run]`);
  await ended(page);
}

/** What an element says, as it changes. */
async function watch(page, selector) {
  await page.evaluate((selector) => {
    const seen = (window.seen ??= {});
    const element = document.querySelector(selector);
    seen[selector] = [];
    new MutationObserver(() => seen[selector].push(element.textContent)).observe(element, { childList: true, characterData: true, subtree: true });
  }, selector);
  return () => page.evaluate((selector) => window.seen[selector], selector);
}

const CHECKS = {
  async "a chat streams its canvas step by step"(page) {
    await page.click("#panel-chat details.settings summary");
    await page.fill("#panel-chat [name=seed]", "1");
    const steps = await watch(page, "#panel-chat [data-of=step]");
    const drafts = await watch(page, "#panel-chat .draft");
    await run(page, "chat");
    assert.match(await status(page), /^Done: \d+ forwards/);
    const counted = new Set((await steps()).filter(Boolean));
    assert.ok(counted.has("1 of 16") && counted.size > 1, [...counted].join());
    assert.ok(new Set((await drafts()).filter(Boolean)).size > 1, "the draft never changed");
    assert.match(await page.getAttribute("#panel-chat .grid", "aria-label"), /step \d+ of 16: \d+ committed.*It reads: \{/);
    assert.equal(await page.locator("#panel-chat .grid .cell").count(), 64);
    JSON.parse(await page.textContent("#panel-chat .final"));
    const receipt = await page.textContent("#panel-chat .receipt");
    const rate = await page.textContent("#panel-chat [data-of=rate]");
    assert.ok(receipt.includes(`Tokens per forward${rate}`) && Number(rate) > 1, receipt);
  },
  async "the scrubber replays every step"(page) {
    const range = page.locator("#panel-chat input[type=range]");
    const told = () => page.textContent("#panel-chat output");
    await range.focus();
    await page.keyboard.press("Home");
    assert.match(await told(), /^1 of \d+$/);
    assert.equal(await page.textContent("#panel-chat [data-of=step]"), "1 of 16");
    assert.equal(await page.textContent("#panel-chat .final"), "", "nothing was final at the first step");
    assert.ok((await page.locator("#panel-chat .grid .renoised").count()) > 0);
    assert.ok((await page.locator("#panel-chat .grid .accepted").count()) > 0);
    await page.keyboard.press("ArrowRight");
    assert.match(await told(), /^2 of /);
    await page.keyboard.press("End");
    assert.ok((await page.locator("#panel-chat .grid .committed").count()) > 0);
    const replayed = await watch(page, "#panel-chat output");
    await page.click("#panel-chat [data-do=play]");
    await page.waitForSelector("#panel-chat [data-do=play]:has-text('Replay')");
    const shown = (await replayed()).map((each) => parseInt(each, 10));
    assert.deepEqual([...new Set(shown)], Array.from({ length: Math.max(...shown) }, (_, at) => at + 1));
  },
  async "a request copied as curl or Python"(page) {
    const texts = {};
    for (const panel of ["chat", "infill"]) {
      await visit(page, panel);
      if (panel === "infill") await page.fill("#panel-infill [name=hint]", "what it's \"called\" – $HOME, \\n");
      for (const kind of ["curl", "python"]) {
        await page.click(`#panel-${panel} [data-do=${kind}]`);
        await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("Copied"));
        texts[`${panel}-${kind}`] = await page.evaluate(() => navigator.clipboard.readText());
        await page.evaluate(() => document.querySelector("#status").replaceChildren());
      }
    }
    await page.fill("#panel-infill [name=hint]", "");
    await visit(page, "chat");
    return { ...texts, answer: await page.textContent("#panel-chat .final") };
  },
  async "a schema is judged as it is written, and holds the answer"(page) {
    const verdict = () => page.textContent("#panel-chat [data-of=schema]");
    const schema = page.locator("#panel-chat [name=schema]");
    await page.click("#panel-chat details.schema summary");
    const given = await schema.inputValue();
    await schema.fill('{"type": ');
    assert.match(await verdict(), /^Not JSON/);
    await page.check("#panel-chat [name=held]");
    await run(page, "chat");
    assert.match(await status(page), /^The schema cannot be used/);
    await schema.fill(given);
    assert.equal(await verdict(), "A schema in JSON.");
    const verdicts = await watch(page, "#panel-chat [data-of=answer]");
    await run(page, "chat");
    assert.ok((await verdicts()).some((each) => /so far|yet|already/.test(each)), "nothing was said while it came");
    assert.match(await page.textContent("#panel-chat [data-of=answer]"), /^Valid JSON, held/);
    assert.deepEqual(Object.keys(JSON.parse(await page.textContent("#panel-chat .final"))), JSON.parse(given).required);
    await page.locator("#panel-chat input[type=range]").fill("1");
    assert.ok((await page.locator("#panel-chat .grid .pinned").count()) > 0);
    await page.uncheck("#panel-chat [name=held]");
  },
  async "a text is JSON, its beginning, or neither"(page) {
    const whole = '{"a":[1,-2.5e3,true,null,"x\\u00e9\\"y"],"b":{"c":false},"d":""}';
    const judge = (texts) => page.evaluate(async (texts) => texts.map((await import("/assets/json.js")).judge), texts);
    const beginnings = Array.from({ length: whole.length - 1 }, (_, at) => whole.slice(0, at + 1));
    assert.deepEqual(new Set(await judge(beginnings)), new Set(["prefix"]));
    assert.deepEqual(await judge([whole, " [] ", "", "\n"]), ["whole", "whole", "empty", "empty"]);
    const broken = ['{"a"}}', "{a", "[1,,", "hello", '{"a":1}x', '"a"b', "[tru3", '{"a":1]'];
    assert.deepEqual(await judge(broken), broken.map(() => "broken"));
  },
  async "a talk goes on, and a new one begins"(page) {
    await page.click("#panel-chat .examples button:has-text('Repeat')");
    await run(page, "chat");
    assert.equal(await page.locator("#panel-chat .turns li").count(), 0);
    await page.fill("#panel-chat [name=prompt]", "Hello");
    await run(page, "chat");
    assert.equal(await page.locator("#panel-chat .turns li").count(), 2);
    await page.click("#panel-chat [data-do=reset]");
    assert.equal(await page.locator("#panel-chat .turns li").count(), 0);
    await page.click("#panel-chat .examples button:has-text('Extract')");
  },
  async "a completion goes on from its text"(page) {
    await visit(page, "completion");
    await run(page, "completion");
    assert.match(await status(page), /^Done/);
    assert.ok((await page.textContent("#panel-completion .final")).length > 0);
    assert.match(await page.textContent("#panel-completion [data-of=step]"), /^\d+ of 16$/);
  },
  async "a selection is rewritten, kept or left"(page) {
    await visit(page, "infill");
    const field = page.locator("#panel-infill [name=document]");
    const before = await field.inputValue();
    assert.match(await page.textContent("#panel-infill .chosen"), /6 characters.*remove/);
    await run(page, "infill");
    const middle = await page.textContent("#panel-infill ins");
    assert.equal(await page.textContent("#panel-infill del"), "remove");
    await page.click("#panel-infill [data-do=drop]");
    assert.equal(await field.inputValue(), before);
    await run(page, "infill");
    await page.click("#panel-infill [data-do=keep]");
    assert.equal(await field.inputValue(), before.replace("remove", middle));
    await field.focus();
    await page.keyboard.press("Control+Home");
    for (let at = 0; at < 3; at += 1) await page.keyboard.press("Shift+ArrowRight");
    assert.match(await page.textContent("#panel-infill .chosen"), /3 characters.*def/);
  },
  async "two decoders race"(page) {
    await visit(page, "race");
    await run(page, "race");
    const receipts = page.locator("#panel-race .lane .receipt");
    assert.equal(await receipts.count(), 2);
    assert.match(await receipts.nth(0).textContent(), /Decoderdiffusion/);
    assert.match(await receipts.nth(1).textContent(), /Decoderar/);
    for (const lane of [0, 1]) assert.ok(parseFloat(await page.locator("#panel-race .clock").nth(lane).textContent()) > 0);
    assert.match(await page.textContent("#panel-race .winner"), /was first: .* times as fast/);
    const said = await page.locator("#panel-race .final").allTextContents();
    await page.click("#panel-race [data-do=replay]");
    await page.waitForSelector("#panel-race [data-do=replay]:enabled", { timeout: DONE_MS });
    assert.deepEqual(await page.locator("#panel-race .final").allTextContents(), said);
    await page.check("#panel-race [name=together]");
    await run(page, "race");
    assert.match(await page.textContent("#panel-race .winner"), /was first/);
  },
  async "tabs obey the arrow keys, and a question is asked and stopped without a mouse"(page) {
    const chosen = () => page.locator("[role=tab][aria-selected=true]").textContent();
    await page.focus("#tab-race");
    for (const [key, name] of [["ArrowRight", "Chat"], ["ArrowRight", "Completion"], ["End", "Race"], ["ArrowLeft", "Infill"], ["Home", "Chat"]]) {
      await page.keyboard.press(key);
      assert.equal(await chosen(), name);
      assert.equal(await page.evaluate(() => document.activeElement.textContent), name);
      assert.deepEqual(await page.locator("[role=tabpanel]:visible").count(), 1);
    }
    assert.equal(await page.locator("[role=tab][tabindex='0'], [role=tab]:not([tabindex])").count(), 1);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.name), "prompt");
    await page.selectOption("#model", "lab:ar");
    await page.fill("#panel-chat [name=max_tokens]", "1000");
    await page.fill("#panel-chat [name=prompt]", "Hello");
    await page.fill("#panel-chat [name=temperature]", "2");
    await page.focus("#panel-chat [name=prompt]");
    await page.keyboard.press("Control+Enter");
    await page.waitForFunction(() => document.querySelector("#panel-chat .final").textContent.length > 0);
    await page.keyboard.press("Escape");
    await ended(page);
    assert.match(await status(page), /^(Stopped|Done)/);
  },
  async "an error of the server is told in words"(page) {
    const before = complaints.length;
    await page.fill("#panel-chat [name=steps]", "4");
    await run(page, "chat");
    assert.match(await status(page), /steps/);
    assert.equal(await page.getAttribute("#status", "data-kind"), "error");
    const told = complaints.splice(before);
    assert.ok(told.every((each) => each.includes("status of 400")), told.join("\n"));
  },
  async "everything that can be used has a name"(page) {
    const nameless = await page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea")]
      .filter((each) => !(each.labels?.length || each.getAttribute("aria-label") || each.textContent.trim()))
      .map((each) => each.outerHTML));
    assert.deepEqual(nameless, []);
  },
  async "a key is asked for once and kept for the session"() {
    const before = complaints.length;
    const page = await open({}, (context) => context.route("**/v1/**", (route) =>
      route.request().headers().authorization === "Bearer sesame"
        ? route.continue()
        : route.fulfill({ status: 401, contentType: "application/json", body: '{"error":{"message":"no known API key"}}' })));
    for (const [given, title] of [["wrong", /asks for a key/], ["sesame", /not known here/]]) {
      await page.waitForFunction((source) => new RegExp(source).test(document.querySelector("#key[open] h2")?.textContent), title.source);
      await page.fill("#key input", given);
      await page.keyboard.press("Enter");
    }
    await ready(page);
    assert.equal(await page.locator("#model option").first().textContent(), "lab");
    await page.click("#panel-chat [data-do=curl]");
    await page.waitForFunction(() => document.querySelector("#status").textContent.startsWith("Copied"));
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.ok(copied.includes("$MEZZOTINT_API_KEY") && !copied.includes("sesame"), copied);
    const told = complaints.splice(before);
    assert.ok(told.every((each) => each.includes("status of 401")), told.join("\n"));
    await page.context().close();
  },
};

for (const [scheme, width] of [["light", 1280], ["dark", 1280], ["light", 360], ["dark", 360]]) {
  CHECKS[`it can be read in ${scheme} at ${width} pixels`] = async () => {
    const page = await open({ colorScheme: scheme, viewport: { width, height: 820 }, reducedMotion: "reduce" });
    await ready(page);
    await page.click("#panel-chat details.settings summary");
    await page.fill("#panel-chat [name=seed]", "1");
    for (const name of TABS) {
      await visit(page, name);
      await run(page, name);
      if (name === "chat") await page.locator("#panel-chat input[type=range]").fill("1");
      await page.evaluate(() => scrollTo(0, 0));
      await page.screenshot({ path: join(shots, `${name}-${scheme}-${width}.png`), fullPage: true });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(over <= 0, `${name} is ${over} pixels too wide`);
    }
    await visit(page, "chat");
    assert.deepEqual(await page.evaluate(findFaint), []);
    assert.match(await page.evaluate(() => getComputedStyle(document.querySelector(".grid .cell")).transition), /^none|^all 0s|^all$/);
    const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const own = await paper();
    await page.click("#theme");
    if (scheme === "light") await page.click("#theme");
    assert.notEqual(await paper(), own, "the toggle turns the theme round");
    await page.context().close();
  };
}

const page = await open();
await ready(page);
for (const [name, check] of Object.entries(CHECKS)) {
  try {
    const found = await check(page);
    console.log(JSON.stringify({ name, fault: null, found: found ?? null }));
  } catch (error) {
    console.log(JSON.stringify({ name, fault: error.stack ?? String(error), found: null }));
  }
}
console.log(JSON.stringify({ name: "the console stays silent", fault: complaints.join("\n") || null, found: null }));
console.log(JSON.stringify({ name: "nothing is asked of another host", fault: foreign.join("\n") || null, found: null }));
await browser.close();
