// Where the servers are that one of several gateways runs for all: at the owner of the partition that a server's name falls into,
// which is the one that has its kept writes in hand too. Whoever is not the owner finds it here, and hears when it has to end.

import type { Duplex } from "node:stream";
import type { GatewayEngine } from "../../contracts/engine/engine.js";
import type { PassedServer, ServerPlace } from "../../contracts/engine/placement.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { ServerStatus } from "../../contracts/status.js";
import { Fault } from "../../protocol/errors.js";
import type { Era } from "../../protocol/modern.js";
import { messageOf } from "../../runtime/expected-error.js";
import { within } from "../../runtime/wait.js";
import { newSecret } from "../../upstream/placed/words.js";
import { serverIdentity } from "../state/server-identity.js";
import { firstLine } from "./first-line.js";

/** Streams of this kind carry one server to the gateway that began them. */
const SERVER = "server";

/** Where nobody has it yet, that is looked at with each change, and this often. */
const LOOK_MS = 250;
/** Whoever has it is asked again this often while it cannot be had there. */
const DOWN_MS = 1_000;
/** The owner may have to start it first. Then it is told why it is not up, and not only that nobody said anything. */
const ANSWER_MS = 20_000;

/** What is said first on a stream. */
export interface PlaceHello {
  readonly v: 1;
  readonly server: string;
  readonly identity: string;
  /** What the other gateway says itself is to begin with it. Absent where an older one asks: then it says nothing. */
  readonly secret?: string;
  /** It wants the replies of a legacy server as they are, and adds itself what its agents need. */
  readonly asWritten?: true;
}

export type PlaceAnswer =
  | { readonly kind: "here"; readonly serverEra?: Era; readonly asWritten?: true }
  /** Another has it by now. */
  | { readonly kind: "moved" }
  /** It cannot be had there, which may change. */
  | { readonly kind: "down"; readonly why: string }
  /** It means another server there. */
  | { readonly kind: "differs" };

type Ends = Set<(isInTime: boolean) => Promise<void>>;

export class ServerPlaces {
  readonly #engine: GatewayEngine;
  /** What has to end with a partition: one child of each server, and the streams of others to it. */
  readonly #ends = new Map<number, Ends>();

  constructor(engine: GatewayEngine) {
    this.#engine = engine;
    engine.partitions.onLost(async (partition, isInTime) => {
      await Promise.all([...(this.#ends.get(partition) ?? [])].map((end) => end(isInTime)));
    });
  }

  /** Undefined where it runs at every gateway. */
  of({ name, target, placement }: ServerSpec): ServerPlace | undefined {
    if (placement !== "one") return undefined;
    const hello: PlaceHello = { v: 1, server: name, identity: serverIdentity(target) };
    return {
      mayRun: () => this.mayRun(name),
      find: (signal) => this.#find(hello, signal),
      runs: (end) => this.endsWith(name, end),
    };
  }

  /** Has `serve` take the streams of others. One that it rejects for is ended and told, and nothing else. */
  accept(serve: (stream: Duplex) => Promise<void>, failed: (error: unknown) => void): void {
    this.#engine.peers.accept(SERVER, (stream) => {
      // It may be lost before anybody else looks at it.
      stream.on("error", () => {});
      serve(stream).catch((error: unknown) => {
        stream.destroy();
        failed(error);
      });
    });
  }

  mayRun(server: string): boolean {
    const { partitions } = this.#engine;
    return partitions.keeps(partitions.of(server));
  }

  /** Undefined where it runs at every gateway. */
  status(spec: ServerSpec | undefined): ServerStatus["placement"] {
    if (spec?.placement !== "one") return undefined;
    const { partitions, self } = this.#engine;
    const gateway = partitions.ownerOf(partitions.of(spec.name));
    return { gateway, isHere: gateway === self };
  }

  /** Calls `end` when the server has to leave this gateway. The returned function takes that back. */
  endsWith(server: string, end: (isInTime: boolean) => Promise<void>): () => void {
    const partition = this.#engine.partitions.of(server);
    const ends: Ends = this.#ends.get(partition) ?? new Set();
    this.#ends.set(partition, ends);
    ends.add(end);
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#ends.get(partition) === ends) this.#ends.delete(partition);
    };
  }

  /** Calls `told` when servers have come to run elsewhere; `isOf` says of one by its name whether it is among them. */
  onMove(told: (isOf: (server: string) => boolean) => void): () => void {
    const { partitions } = this.#engine;
    return partitions.onChange((changed) => told((server) => partitions.of(server) === changed));
  }

  async #find(hello: PlaceHello, signal: AbortSignal): Promise<"here" | PassedServer> {
    const { partitions, self } = this.#engine;
    const partition = partitions.of(hello.server);
    let why = "no gateway on the engine has it in hand";
    while (!signal.aborted) {
      if (partitions.keeps(partition)) return "here";
      const owner = partitions.ownerOf(partition);
      let waitMs = LOOK_MS;
      if (owner !== undefined && owner !== self) {
        const found = await this.#ask(owner, hello, signal);
        if (typeof found === "object") return found;
        if (found !== undefined) {
          why = found;
          waitMs = DOWN_MS;
        }
      }
      await this.#moved(hello.server, waitMs, signal);
    }
    throw new Fault("unavailable", `It runs at one gateway for all, and could not be had there: ${why}.`);
  }

  /** The stream; or why it cannot be had there, undefined where it is another's by now. Throws a Fault. */
  async #ask(owner: string, hello: PlaceHello, signal: AbortSignal): Promise<PassedServer | string | undefined> {
    let stream: Duplex | undefined;
    try {
      stream = await this.#engine.peers.connect(owner, SERVER);
      const secret = newSecret();
      stream.write(`${JSON.stringify({ ...hello, secret, asWritten: true } satisfies PlaceHello)}\n`);
      const answer = await firstLine<PlaceAnswer>(stream, within(ANSWER_MS, signal));
      if (answer.kind === "here" && !signal.aborted) {
        const { serverEra, asWritten } = answer;
        return { stream, secret, serverEra, isAsWritten: asWritten === true && serverEra === "legacy" };
      }
      stream.on("error", () => {}).destroy();
      if (answer.kind === "down") return `at gateway ${owner}, ${answer.why}`;
      if (answer.kind !== "differs") return undefined;
    } catch (error) {
      stream?.on("error", () => {}).destroy();
      return `gateway ${owner} did not answer (${messageOf(error)})`;
    }
    throw new Fault(
      "unavailable",
      `Gateway ${owner} has "${hello.server}" in hand, and its entry there means another server.`,
      { remedy: "Give all gateways the same config." },
    );
  }

  async #moved(server: string, ms: number, signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const over = () => {
        clearTimeout(timer);
        end();
        signal.removeEventListener("abort", over);
        resolve();
      };
      const timer = setTimeout(over, ms);
      const end = this.onMove((isOf) => {
        if (isOf(server)) over();
      });
      signal.addEventListener("abort", over, { once: true });
      if (signal.aborted) over();
    });
  }
}
