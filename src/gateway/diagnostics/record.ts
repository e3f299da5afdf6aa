// Recordings of arguments and results, as the operator asks for them: begun, ended by a word or by their time, and shown to
// operators alone. What keeps them is loaded when somebody records.

import type { RecordAnswer, RecordedBodies, RecordingShown } from "../../contracts/control/record.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import type { Recordings, RedactFor } from "../../observe/calls/recording.js";
import type { CallRecords } from "../../observe/metrics/call-records.js";
import type { CallObserver } from "../../observe/observed-call.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { systemClock } from "../../runtime/clock.js";
import { nearest } from "../../runtime/nearest.js";

/** As recording.ts has it, which is not loaded for this. */
const MAX_FOR_MS = 3_600_000;
const USUAL_FOR_MS = 600_000;
/** A refusal of a tool's name lists no more of its server's tools: a server may have thousands. */
const MAX_TOLD = 20;

export interface RecordParts {
  readonly records: CallRecords;
  readonly observer: CallObserver;
  readonly redactFor: RedactFor;
  /** The servers of the config. */
  readonly servers: () => readonly string[];
  /** A server's own names of its tools; undefined where nobody has read them. */
  readonly toolsOf: (server: string) => readonly string[] | undefined;
}

export class RecordingControl {
  readonly #parts: RecordParts;
  #recordings: Recordings | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(parts: RecordParts) {
    this.#parts = parts;
  }

  /** What is recorded now. */
  get shown(): readonly RecordingShown[] {
    return this.#recordings?.shown ?? [];
  }

  /**
   * `GET /record`, `POST /record` with `{server, tool?, forMs?}`, `POST /record/stop` with `{server?, tool?}` for that one or
   * all, `GET /calls/:seq/bodies`.
   */
  get routes(): ControlRoutes {
    return {
      "GET /record": (): RecordAnswer => ({ recordings: this.shown }),
      "POST /record": async ({ body }): Promise<RecordAnswer> => {
        const { server, tool, forMs = USUAL_FOR_MS } = isObject(body) ? body : {};
        if (typeof server !== "string" || (tool !== undefined && typeof tool !== "string")) {
          throw new ControlError("invalid", '"server" is a string, and so is "tool" where there is one.');
        }
        if (!(typeof forMs === "number" && forMs > 0 && forMs <= MAX_FOR_MS)) {
          throw new ControlError("invalid", '"forMs" is a number of milliseconds, at most those of an hour.');
        }
        if (!this.#parts.servers().includes(server)) {
          throw new ControlError("not-found", `There is no server ${JSON.stringify(server)}.`);
        }
        if (tool !== undefined) demandTool(server, tool, this.#parts.toolsOf(server));
        await this.#begin(server, tool, forMs);
        return { recordings: this.shown };
      },
      "POST /record/stop": ({ body }): RecordAnswer & { stopped: number } => {
        const { server, tool } = isObject(body) ? body : {};
        const text = (value: unknown) => (typeof value === "string" ? value : undefined);
        const stopped = this.#recordings?.stop(text(server), text(tool)) ?? 0;
        this.#wait();
        return { stopped, recordings: this.shown };
      },
      "GET /calls/:seq/bodies": ({ params }): RecordedBodies => {
        const { records } = this.#parts;
        records.flush();
        const seq = Number(params["seq"]);
        const isKept = Number.isInteger(seq) && seq >= records.kept.first && seq <= records.kept.last;
        const bodies = isKept ? records.kept.at(seq).recorded?.read() : undefined;
        if (bodies === undefined) {
          throw new ControlError(
            "not-found",
            "Nothing was recorded of that call, or the recording is over, or its server is no longer in the config.",
          );
        }
        return bodies;
      },
    };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#recordings?.stop();
  }

  async #begin(server: string, tool: string | undefined, forMs: number): Promise<void> {
    const { Recordings } = await import("../../observe/calls/recording.js");
    const recordings = this.#recordings ?? new Recordings(this.#parts.redactFor, systemClock);
    this.#recordings = recordings;
    if (!recordings.begin(server, tool, forMs)) {
      throw new ControlError("limit", "16 recordings are under way, and no more may be: end one by --stop.");
    }
    this.#wait();
  }

  /** For the end of the next; nothing is looked at in a call once none is left. */
  #wait(): void {
    clearTimeout(this.#timer);
    const endMs = this.#recordings?.sweep();
    this.#parts.observer.recordings = endMs === undefined ? undefined : this.#recordings;
    if (endMs === undefined) return;
    this.#timer = setTimeout(() => this.#wait(), Math.max(1, endMs - systemClock.now())).unref();
  }
}

/** A slip of its name would record nothing, and say so nowhere. */
function demandTool(server: string, tool: string, own: readonly string[] | undefined): void {
  if (own === undefined || own.includes(tool)) return;
  const near = nearest(tool, own);
  const has =
    own.length === 0
      ? "It has none."
      : `It has ${own.slice(0, MAX_TOLD).join(", ")}${own.length > MAX_TOLD ? ", …" : ""}.`;
  const hint = near === undefined ? has : `Did you mean ${near}?`;
  throw new ControlError("not-found", `Server ${JSON.stringify(server)} has no tool ${JSON.stringify(tool)}. ${hint}`);
}
