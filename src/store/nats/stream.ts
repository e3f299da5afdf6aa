// A stream of commits in JetStream: one try of each request, its answer put into the words of the store, and the following
// by an ordered consumer, which outlives connections and begins again where it has been away for too long.

import { type ConsumerMessages, type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type {
  CommitStream,
  LastMessage,
  NewMessage,
  PublishOutcome,
  StreamFollower,
  StreamMessage,
  TryPace,
} from "../commits/stream.js";
import { StoreError } from "../store-error.js";
import { EngineError } from "./engine-error.js";

/** Requests that are on their way when a connection breaks are not rejected by the client: they wait this out. */
const TRY_MS = 2_000;
/** Headers and the subject count with the body. */
const HEADER_BYTES = 4 * 1024;
/** Who was away for longer reads all of it again: deletions are kept for twice as long. */
const AWAY_LIMIT_MS = 5 * 60_000;
/** Before it is followed again after an error: reconnect storms have left hundreds of consumers behind. */
const FOLLOW_PAUSE_MS = 500;
/** Messages that the client asks for at once. */
const PULLED_AT_ONCE = 256;

/** What is used of the connection. */
export interface EngineConnection {
  readonly connection: NatsConnection;
  /** Throws at once, and nothing was sent, where there is no connection or too much is under way. */
  ask<T>(bytes: number, send: (connection: NatsConnection) => Promise<T>): Promise<T>;
  /** Is told what became of each write: why there was no room for it, undefined where it was taken. */
  wrote(full: string | undefined): void;
  /** It told something of what all gateways read. */
  heard(): void;
}

interface ApiError {
  readonly name?: string;
  readonly code?: number;
  readonly message?: string;
  readonly cause?: unknown;
}

const WRONG_LAST_SEQUENCE = 10071;
const NO_MESSAGE: ReadonlySet<unknown> = new Set([10037, 10043, 10057]);
/** The stream, the account or the disk has no room: 10077, 10002, 10047 and 10023. */
const NO_ROOM: ReadonlySet<unknown> = new Set([10077, 10002, 10047, 10023]);
/** No leader, or not now. */
const FOR_NOW: ReadonlySet<unknown> = new Set([10008, 10009, 10076, 10039]);

export function maxBodyBytes({ connection }: EngineConnection): number {
  return (connection.info?.max_payload ?? 1024 * 1024) - HEADER_BYTES;
}

export class JetStreamStream implements CommitStream {
  readonly #engine: EngineConnection;
  readonly #name: string;
  readonly #pace: TryPace;
  readonly #manager: JetStreamManager;
  readonly #client: ReturnType<typeof jetstream>;

  static async open(engine: EngineConnection, name: string, pace: TryPace): Promise<JetStreamStream> {
    const manager = await jetstreamManager(engine.connection, { checkAPI: false, timeout: TRY_MS });
    return new JetStreamStream(engine, name, pace, manager);
  }

  private constructor(engine: EngineConnection, name: string, pace: TryPace, manager: JetStreamManager) {
    this.#engine = engine;
    this.#name = name;
    this.#pace = pace;
    this.#manager = manager;
    this.#client = jetstream(engine.connection, { timeout: TRY_MS });
  }

  get maxBodyBytes(): number {
    return maxBodyBytes(this.#engine);
  }

  readonly moreRoom = "For more, raise `max_payload` in the config of the nats-servers.";

  async publish({ subject, id, body, expected }: NewMessage): Promise<PublishOutcome> {
    const expect = { streamName: this.#name, ...(expected === undefined ? {} : { lastSubjectSequence: expected }) };
    let isSent = false;
    try {
      const ack = await this.#engine.ask(body.length, () => {
        isSent = true;
        return this.#client.publish(subject, body, { msgID: id, timeout: TRY_MS, expect });
      });
      // An id that is remembered without a place is no proof that anything is stored.
      if (ack.seq <= 0) return { kind: "silent" };
      this.#engine.wrote(undefined);
      return { kind: "stored", sequence: ack.seq };
    } catch (error) {
      if (isSent) {
        const outcome = outcomeOf(error as ApiError);
        if (outcome.kind === "refused" && outcome.error.code === "full") this.#engine.wrote(outcome.error.message);
        return outcome;
      }
      return { kind: "unsent", retryInMs: error instanceof EngineError ? error.retryInMs : undefined };
    }
  }

  async last(subject: string): Promise<LastMessage> {
    try {
      // By the leader: copies may be behind, and streams of ours let none answer.
      const found = await this.#engine.ask(subject.length, () =>
        this.#manager.streams.getMessage(this.#name, { last_by_subj: subject }),
      );
      if (found === null) return { message: undefined };
      return { message: { subject, sequence: found.seq, body: found.string(), atMs: found.time.getTime() } };
    } catch (error) {
      return NO_MESSAGE.has((error as ApiError).code) ? { message: undefined } : undefined;
    }
  }

  remove(sequence: number): Promise<boolean> {
    return this.#answered(() => this.#manager.streams.deleteMessage(this.#name, sequence, false));
  }

  clear(subject: string, sequence: number): Promise<boolean> {
    return this.#answered(() => this.#manager.streams.purge(this.#name, { filter: subject, seq: sequence + 1 }));
  }

  follow(prefix: string, follower: StreamFollower): () => Promise<void> {
    let isEnded = false;
    let messages: ConsumerMessages | undefined;
    const run = async () => {
      while (!isEnded) {
        try {
          messages = await this.#read(prefix, follower, () => isEnded);
          await messages?.close();
        } catch {
          // Whatever it was, all of it is read again.
        }
        if (!isEnded) await this.#pace.sleep(FOLLOW_PAUSE_MS * (1 + this.#pace.random()));
      }
    };
    const over = run();
    return async () => {
      isEnded = true;
      this.#stopReading?.();
      await over;
    };
  }

  #stopReading: (() => void) | undefined;

  async #read(prefix: string, follower: StreamFollower, isEnded: () => boolean): Promise<ConsumerMessages | undefined> {
    const { state } = await this.#manager.streams.info(this.#name);
    const consumer = await this.#client.consumers.get(this.#name, { filter_subjects: `${prefix}>` });
    if (isEnded()) {
      await consumer.delete().catch(() => {});
      return undefined;
    }
    const messages = await consumer.consume({ max_messages: PULLED_AT_ONCE });
    const unwatch = this.#restartAfterLongAbsence(() => messages.stop());
    this.#stopReading = () => messages.stop();
    const progress = new FollowProgress(() => follower.current());
    try {
      follower.restarted(state.last_seq);
      this.#learnGoal(`${prefix}>`, progress).catch(() => messages.stop());
      for await (const message of messages) {
        const told: StreamMessage = {
          subject: message.subject,
          sequence: message.seq,
          id: message.headers?.get("Nats-Msg-Id"),
          // Only where it is read: what was written here is known.
          get body() {
            return message.string();
          },
          atMs: Number(message.timestampNanos / 1_000_000n),
        };
        follower.message(told);
        progress.told(message.seq);
      }
      return messages;
    } finally {
      progress.end();
      unwatch();
      await consumer.delete().catch(() => {});
    }
  }

  /** Again while it is not reached: what was the last may have been removed since. */
  async #learnGoal(subjects: string, progress: FollowProgress): Promise<void> {
    while (progress.isUnderWay) {
      const last = await this.last(subjects);
      if (last !== undefined) progress.reaches(last.message?.sequence ?? 0);
      if (progress.isUnderWay) await this.#pace.sleep(FOLLOW_PAUSE_MS);
    }
  }

  #restartAfterLongAbsence(restart: () => void): () => void {
    let awaySince: number | undefined;
    let isOver = false;
    const watch = async () => {
      for await (const { type } of this.#engine.connection.status()) {
        if (isOver) return;
        if (type === "disconnect") awaySince ??= this.#pace.now();
        if (type !== "reconnect") continue;
        if (awaySince !== undefined && this.#pace.now() - awaySince > AWAY_LIMIT_MS) restart();
        awaySince = undefined;
      }
    };
    watch().catch(() => {});
    return () => {
      isOver = true;
    };
  }

  async #answered(send: () => Promise<unknown>): Promise<boolean> {
    try {
      await this.#engine.ask(0, send);
      return true;
    } catch (error) {
      return NO_MESSAGE.has((error as ApiError).code);
    }
  }
}

/**
 * Whether all has been told that the leader had when the following began. The node that tells may be behind it, and then says
 * that nothing is left: what it lacks would be taken for gone.
 */
class FollowProgress {
  readonly #current: () => void;
  #goal = Number.POSITIVE_INFINITY;
  #toldTo = 0;
  #isOver = false;

  constructor(current: () => void) {
    this.#current = current;
  }

  get isUnderWay(): boolean {
    return !this.#isOver;
  }

  /** The leader's last message. A later one is no new goal: under steady writes none would be reached. */
  reaches(sequence: number): void {
    this.#goal = Math.min(this.#goal, sequence);
    this.#look();
  }

  told(sequence: number): void {
    this.#toldTo = sequence;
    this.#look();
  }

  end(): void {
    this.#isOver = true;
  }

  #look(): void {
    if (this.#isOver || this.#toldTo < this.#goal) return;
    this.#isOver = true;
    this.#current();
  }
}

function outcomeOf(error: ApiError): PublishOutcome {
  const { code, name, message = "" } = error;
  if (code === WRONG_LAST_SEQUENCE) return { kind: "conflict" };
  if (FOR_NOW.has(code)) return { kind: "nobody" };
  if (NO_ROOM.has(code))
    return refused("full", `The engine has no room: ${message}. Give its stream or account more.`, error);
  if (name === "InvalidArgumentError") return refused("invalid", `The engine does not take it: ${message}.`, error);
  if (name === "PermissionViolationError") {
    return refused(
      "io",
      `The engine's user may not write: ${message}. Give it publish rights on the prefix and $JS.API.>.`,
      error,
    );
  }
  // Nobody listens there: the normal face of an election.
  if (name === "JetStreamNotEnabled") return { kind: "nobody" };
  if (name === "JetStreamApiError" || name === "StreamNotFoundError") {
    return refused("io", `The engine refused a write: ${message} (${code}).`, error);
  }
  return { kind: "silent" };
}

function refused(code: "full" | "invalid" | "io", text: string, cause: unknown): PublishOutcome {
  return { kind: "refused", error: new StoreError(code, text, cause) };
}
