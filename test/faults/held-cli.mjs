// The program `toolway` from its built modules, so that it can be held at a point that has a name, and be killed there: what
// is on the disk and on the wire is then what was there at that point, each time. The first word is a file, and what stands
// in that file is the point; a process that has reached it says so, and does not go on.

import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { runCli } from "../../dist/cli/program.js";
import { MailStore } from "../../dist/mailbox/broker/mail-store.js";
import { Journal } from "../../dist/mailbox/share/journal.js";
import { OutboxJournal } from "../../dist/outbox/journal.js";

const [plan, ...line] = process.argv.slice(2);
// Where it stands before a whole command line, that one's program is this one.
const words = line[0] === process.execPath ? line.slice(2) : line;

/** `of` says which of several is held there. */
function isHeldAt(point, of = "") {
  if (readFileSync(plan, "utf8") !== point) return false;
  process.stderr.write(`held: ${point} ${of}\n`);
  return true;
}

const never = new Promise(() => {});

/** Holds a method before it writes, and after what it wrote is on the disk. */
function hold(prototype, method, pointOf, ofWhat = () => "") {
  const original = prototype[method];
  prototype[method] = async function (...given) {
    const point = pointOf(...given);
    const of = ofWhat(...given);
    if (isHeldAt(`before ${point}`, of)) return never;
    const written = await original.apply(this, given);
    return isHeldAt(`after ${point}`, of) ? never : written;
  };
}

hold(MailStore.prototype, "add", (record) => (record.includes('"kind":"mcp_reply"') ? "reply" : "delivery"));
hold(Journal.prototype, "start", () => "start");
hold(Journal.prototype, "finish", () => "outcome");
const toolOf = (_sequence, { tool }) => tool;
hold(OutboxJournal.prototype, "take", () => "write", toolOf);
hold(OutboxJournal.prototype, "save", (_sequence, { state }) => state, toolOf);

process.exitCode = await runCli(words, {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  cwd: process.cwd(),
  home: homedir(),
  isTTY: false,
  isErrTTY: false,
  signal: new AbortController().signal,
});
