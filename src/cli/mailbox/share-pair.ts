// What `share --pair` needs before it shares: a broker, the token of a sharer there, and a word for the other machine.
// Where no broker is named it runs one itself, with the state of `toolway broker`.

import { networkInterfaces } from "node:os";
import { join } from "node:path";
import { DEFAULT_BROKER_LISTEN, type ListenAddress, parseListen } from "../../config/config.js";
import type { GatewayStatus, MailboxSummary } from "../../contracts/status.js";
import { brokerUrlOf } from "../../mailbox/wire/address.js";
import { stateRootFor } from "../../runtime/state-dir.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import {
  type GatewayClient,
  type GatewaySource,
  gatewayPort,
  runningGateway,
  type StartedGateway,
} from "../gateway/port.js";
import { UserError, usageError } from "../line/errors.js";
import { type Io, note, shellPath } from "../line/io.js";
import { longDuration } from "../text/print.js";
import { noteOpened } from "./broker-option.js";
import { machineName } from "./pair.js";

interface PairedShareInput {
  readonly broker: string | undefined;
  readonly as: string | undefined;
  readonly listen: ListenAddress | undefined;
  readonly role: string | undefined;
  /** The gateway whose tools are shared. */
  readonly source: GatewaySource;
}

export interface PairedShare {
  readonly broker: string;
  readonly as: string;
  readonly token: string;
  /** What is typed on the other machine. */
  readonly word: string;
  /** Ends the broker, where it is ours. */
  close(): Promise<void>;
}

export async function pairForShare(input: PairedShareInput, io: Io): Promise<PairedShare> {
  const as = input.as ?? machineName();
  const made =
    input.broker === undefined ? await atOwnBroker(input, as, io) : await atBroker(input.broker, as, input, io);
  const { pairWord } = await import("../../mailbox/pairing/code-text.js");
  const { broker, token, code, expiresInMs, close } = made;
  const word = pairWord(made.reachedAt, code);
  note(io, `On the other machine, once, within ${longDuration(expiresInMs)}:\n\n  npx toolway join --pair ${word}\n`);
  return { broker, as, token, word, close };
}

interface Made {
  readonly broker: string;
  /** How other machines reach it. */
  readonly reachedAt: string;
  readonly token: string;
  readonly code: string;
  readonly expiresInMs: number;
  close(): Promise<void>;
}

/** A broker somewhere else, which knows us by our token. */
async function atBroker(broker: string, as: string, input: PairedShareInput, io: Io): Promise<Made> {
  if (input.listen !== undefined) throw usageError("--listen is for a broker of our own: leave --broker out.");
  const token = io.env["TOOLWAY_TOKEN"] ?? "";
  if (token === "")
    throw usageError("The token of this machine at the broker is missing.", "Put it into TOOLWAY_TOKEN.");
  if (await sharesAt(broker, as, input.source, io)) {
    throw sharedAlready(
      as,
      broker,
      `\`toolway mailbox pair ${shellWord(as)}\` at the broker prints one more word for it.`,
    );
  }
  const { openLine } = await import("../../mailbox/peer/line.js");
  const events = { onMessage() {}, onLive() {}, onCancel() {}, onPresence() {}, onDrain() {}, onClose() {} };
  try {
    // It takes no messages, and is gone before the tools are shared.
    const line = await openLine({ url: broker, token, address: as, kinds: ["none"], signal: io.signal }, events);
    const { code, expiresInMs } = await line.pair(input.role).finally(() => line.close());
    return { broker, reachedAt: broker, token, code, expiresInMs, close: async () => {} };
  } catch (error) {
    io.signal.throwIfAborted();
    throw new UserError(`The broker at ${broker} made no code: ${(error as Error).message}`, { cause: error });
  }
}

/** A broker of this user: the one that runs, else one in this process. */
async function atOwnBroker(input: PairedShareInput, as: string, io: Io): Promise<Made> {
  const { home } = io;
  // A token in the environment is for a broker elsewhere.
  const { TOOLWAY_TOKEN: _, ...env } = io.env;
  const stateDir = join(stateRootFor(env, home), "broker");
  const found = await (await runningGateway()).find({ stateDir });
  const listen = input.listen ?? parseListen(DEFAULT_BROKER_LISTEN);
  const started = found === undefined ? await startBroker({ stateDir, env, home, listen }, io) : undefined;
  try {
    const client = found ?? (await (await runningGateway()).find({ stateDir }));
    if (client === undefined) throw new UserError("The broker in this process does not answer.");
    if (started !== undefined && listen !== undefined) noteOpened(listen.host, started.url.startsWith("https:"), io);
    const { endpoint } = (await client.get("/status", io.signal)) as GatewayStatus;
    const broker = brokerUrlOf(endpoint ?? "");
    // Before anything is changed: a new secret would end whoever shares there now.
    const isKnown = await isSharer(client, as, io);
    if (isKnown && ((await sharesAt(broker, as, input.source, io)) || (await isTaken(client, as, io)))) {
      const one = `mailbox pair ${shellWord(as)} --state ${shellPath(io, stateDir)}`;
      throw sharedAlready(
        as,
        broker,
        `\`toolway ${one}\` at the broker prints one more word for it; other tools need another --as.`,
      );
    }
    const token = await newSecret(client, as, isKnown, io);
    const body = { mailbox: as, ...(input.role === undefined ? {} : { role: input.role }) };
    const made = (await client.post("/mailboxes/pair", body, io.signal)) as { code: string; expiresInMs: number };
    const close = async () => started?.close({ drainMs: 0, why: "nothing is shared any more" });
    return { broker, reachedAt: reachedAt(broker), token, ...made, close };
  } catch (error) {
    await started?.close({ drainMs: 0, why: "nothing is shared" });
    throw error;
  }
}

/** Whether the gateway whose tools are meant shares them there, also while it is not connected. */
async function sharesAt(broker: string, as: string, source: GatewaySource, io: Io): Promise<boolean> {
  const client = await (await runningGateway()).find(source);
  if (client === undefined) return false;
  const { shares } = (await client.get("/status", io.signal)) as GatewayStatus;
  return shares.some((one) => one.mailbox === as && hrefOf(one.broker) === hrefOf(broker));
}

/** An address that is none is told where it is dialled. */
function hrefOf(broker: string): string {
  return URL.canParse(broker) ? new URL(broker).href : broker;
}

/** Whether somebody takes from the mailbox now, of whichever gateway. */
async function isTaken(client: GatewayClient, as: string, io: Io): Promise<boolean> {
  const path = `/mailboxes/summary?mailbox=${encodeURIComponent(as)}`;
  return ((await client.get(path, io.signal)) as MailboxSummary).connections > 0;
}

function sharedAlready(as: string, broker: string, hint: string): UserError {
  return new UserError(`Tools are shared as "${as}" at ${broker} already, and nothing was changed.`, { hint });
}

interface BrokerPlace {
  readonly stateDir: string;
  readonly env: Io["env"];
  readonly home: string;
  readonly listen: ListenAddress | undefined;
}

async function startBroker(place: BrokerPlace, io: Io): Promise<StartedGateway> {
  const port = await gatewayPort();
  try {
    return await port.start({
      ...place,
      configPath: undefined,
      builtIn: "broker",
      stateNamed: true,
      noAuth: false,
      names: undefined,
      tls: undefined,
      logCalls: false,
    });
  } catch (error) {
    throw await (await import("../gateway/taken-address.js")).namingWhoListens(error, io);
  }
}

/** Whether the broker has a token for it already. Throws where that is of another role. */
async function isSharer(client: GatewayClient, as: string, io: Io): Promise<boolean> {
  const { tokens } = (await client.get("/tokens", io.signal)) as { tokens: readonly { id: string; role: string }[] };
  const known = tokens.find(({ id }) => id === as);
  if (known === undefined || known.role === "sharer") return known !== undefined;
  throw usageError(`At this broker "${as}" is a token of the role ${known.role}.`, "Choose another name with --as.");
}

/** A new secret each time: the one before was in the memory of a process that is gone. */
async function newSecret(client: GatewayClient, as: string, isKnown: boolean, io: Io): Promise<string> {
  const made = isKnown
    ? await client.post(`/tokens/${encodeURIComponent(as)}/rotate`, {}, io.signal)
    : await client.post("/tokens", { id: as, role: "sharer" }, io.signal);
  return (made as { token: string }).token;
}

/** A broker that listens everywhere is reached by an address of this machine in its network. */
function reachedAt(broker: string): string {
  const url = new URL(broker);
  if (url.hostname !== "0.0.0.0" && url.hostname !== "[::]") return broker;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const own = addresses.find(({ internal, family }) => !internal && family === "IPv4");
  if (own !== undefined) url.hostname = own.address;
  return url.href;
}
