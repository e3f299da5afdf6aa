// `toolway record`: keeps arguments and results of calls for a while, in memory, for who looks at them.

import type { RecordAnswer, RecordedBodies } from "../../contracts/control/record.js";
import { demandGateway } from "../gateway/which.js";
import { defineCommand, gatewayOptions, jsonOption } from "../line/command.js";
import { Exit, usageError } from "../line/errors.js";
import { type Io, note, print, printJson, shown } from "../line/io.js";
import { durationMs } from "../line/times.js";

const MAX_MS = 3_600_000;

export const record = defineCommand({
  metadata: {
    name: "record",
    summary: "Keeps arguments and results of calls for a while.",
    description:
      "Keeps arguments and results of a server's calls, or of one tool's, in the memory of the running gateway: 64 KiB a " +
      "side, 16 MiB in all, without the secrets of the server's entry, and gone when the time is over. Of plain calls " +
      "nothing else keeps them; the outbox, mailboxes, the journal of who shares, the cache and the audit log with " +
      '`"arguments": "redacted"` have what they need, recorded or not. They are shown with each call on the page, to ' +
      "operators, and by --call. Without a server, what is recorded now.",
  },
  args: {
    what: {
      description: "A server, or one of its tools by the name that it has there: github, github/create_issue.",
      completes: "server",
    },
  },
  options: {
    for: { value: "TIME", description: "For so long, at most an hour: 30s, 10m, 1h. Default: 10m." },
    stop: {
      description:
        "Ends it, and forgets what it kept. The one of a server leaves those of its tools. Without a server: all.",
    },
    call: {
      value: "NUMBER",
      description:
        "Shows what was recorded of this call: by its `seq` in `toolway calls --json`, or the number in its address on the page.",
    },
    ...gatewayOptions,
    ...jsonOption,
  },
  examples: [
    { line: "toolway record github/create_issue --for 10m", note: "one tool's calls, for ten minutes" },
    { line: "toolway record --call 1042", note: "what that call was given, and gave" },
    { line: "toolway record --stop", note: "ends all, and forgets what they have" },
  ],
  async handler(input, io) {
    const target = targetOf(input.what);
    const forMs = input.for === undefined ? undefined : demandTime(input.for);
    if (input.stop && forMs !== undefined) throw usageError("--for and --stop do not go together.");
    if (forMs !== undefined && target === undefined) {
      throw usageError("--for needs a server: toolway record github --for 10m.");
    }
    const client = await demandGateway(input, io);
    if (input.call !== undefined) {
      if (!/^\d{1,15}$/.test(input.call)) throw usageError(`--call ${input.call}: expected the number of a call.`);
      const bodies = (await client.get(`/calls/${input.call}/bodies`, io.signal)) as RecordedBodies;
      if (input.json) printJson(io, bodies);
      else showBodies(bodies, io);
      return Exit.ok;
    }
    const answer = (await (input.stop
      ? client.post("/record/stop", target ?? {}, io.signal)
      : target === undefined
        ? client.get("/record", io.signal)
        : client.post("/record", { ...target, forMs }, io.signal))) as RecordAnswer & { stopped?: number };
    if (input.json) {
      printJson(io, answer);
      return Exit.ok;
    }
    if (input.stop) print(io, answer.stopped === 0 ? "Nothing was recorded." : "Ended; what was kept is forgotten.");
    for (const { server, tool, until, calls } of shown(answer.recordings, io.isTTY)) {
      const what = tool === undefined ? server : `${server}/${tool}`;
      print(io, `${what} is recorded until ${until}, ${calls} ${calls === 1 ? "call" : "calls"} so far`);
    }
    if (answer.recordings.length === 0 && !input.stop) note(io, "Nothing is recorded. `toolway record SERVER` begins.");
    return Exit.ok;
  },
});

function targetOf(what: string | undefined): { server: string; tool?: string } | undefined {
  if (what === undefined) return undefined;
  const at = what.indexOf("/");
  const [server, tool] = at < 0 ? [what, undefined] : [what.slice(0, at), what.slice(at + 1)];
  if (server === "" || tool === "") throw usageError(`${what}: expected SERVER, or SERVER/TOOL.`);
  return tool === undefined ? { server } : { server, tool };
}

function demandTime(text: string): number {
  const ms = durationMs(text);
  if (ms === undefined || ms > MAX_MS) {
    throw usageError(`--for ${text}: expected a time such as 30s, 10m or 1h, at most an hour.`);
  }
  return ms;
}

function showBodies({ cut, ...sides }: RecordedBodies, io: Io): void {
  for (const side of ["arguments", "result"] as const) {
    print(io, `${side}${cut.includes(side) ? " (the beginning)" : ""}:`);
    print(io, shown(sides[side] === "" ? "too large to be kept" : sides[side], io.isTTY));
  }
}
