// The pictures of the operator's page, all of them: `npm run screenshots` makes its scene and goes through every view. What is
// on them is looked at by people; that nobody is kept out of the views is shown by test/e2e/dashboard.test.ts.

import { execFile } from "node:child_process";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root, temporaryDirectory } from "../e2e/harness.js";
import { chromium, NO_BROWSER } from "../fixtures/browser.js";
import { full } from "./length.js";

const VIEWS = [
  ...["overview", "calls", "call", "servers", "server", "tools", "tool", "pins", "pin-diff"],
  ...["waiting", "write", "access", "config", "audit"],
];
/** The scene is made of processes that start and die, and each view is waited for. */
const PICTURES_MS = 300_000;
/** One of an empty page is smaller. */
const MIN_BYTES = 8_000;

const why = chromium === undefined ? ` (${NO_BROWSER})` : full ? "" : " (in the full form alone)";

it.skipIf(why !== "")(
  `every view has its picture, in both themes and both widths${why}`,
  { timeout: PICTURES_MS },
  async () => {
    const out = await temporaryDirectory();
    await promisify(execFile)(process.execPath, [join(root, "scripts/screenshots.mjs"), "--out", out], {
      timeout: PICTURES_MS,
    });
    const wanted = VIEWS.flatMap((view) =>
      ["light", "dark"].flatMap((theme) => ["wide", "narrow"].map((width) => `${view}-${theme}-${width}.png`)),
    );
    expect(new Set(await readdir(out))).toEqual(new Set(wanted));
    for (const name of wanted) expect((await stat(join(out, name))).size, name).toBeGreaterThan(MIN_BYTES);
  },
);
