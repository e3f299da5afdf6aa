// The operator's door of a gateway, which nobody has asked for as a rule: its code is loaded when somebody does, when
// sessions of before live, or when the config holds it open.

import { fileURLToPath } from "node:url";
import type { AdminSettings } from "../../contracts/settings.js";
import type { DurableMap } from "../../contracts/store.js";
import type { DoorRecord, DoorTokens, OperatorDoor } from "../../control/door/door.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import { systemClock } from "../../runtime/clock.js";
import type { SnapshotSource } from "./page-snapshots.js";
import { shownRoutes } from "./shown.js";

/** Whoever has the port that the config names may let go of it: a gateway that is on its way out has gone by then. */
const HOLD_AGAIN_MS = 5_000;

export interface DoorOf extends SnapshotSource {
  readonly state: { readonly door: DurableMap<DoorRecord>; readonly adminTokens: DoorTokens };
  readonly config: { readonly admin: AdminSettings | false | undefined };
  readonly log: { error(text: string): void };
  /** Somebody showed a token or a session that is none. */
  refused(address: string, path: string, why: string): void;
  /** Reads what the door shows, once, and follows its files then. Asked for where the config names some. */
  certificate(files: CertificateFiles): Promise<DoorCertificate>;
}

type CertificateFiles = NonNullable<AdminSettings["tls"]>;

/** The certificate of the door: its text now, and what tells the door of another. */
export interface DoorCertificate {
  readonly now: { readonly cert: Buffer; readonly key: Buffer };
  follow(door: Pick<OperatorDoor, "setCertificate">): { close(): void };
}

export class LazyDoor {
  readonly #gateway: DoorOf;
  readonly #routes: () => ControlRoutes;
  /** As it was at the start: another one waits for the next. */
  readonly #admin: AdminSettings | false | undefined;
  #door: Promise<OperatorDoor> | undefined;
  #certificate: { close(): void } | undefined;
  #again: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** `routes` are all that the control socket has. */
  constructor(gateway: DoorOf, routes: () => ControlRoutes) {
    this.#gateway = gateway;
    this.#routes = routes;
    this.#admin = gateway.config.admin;
  }

  /** `POST /door` with `{view?}`, `GET /door`, `DELETE /door`. */
  get routes(): ControlRoutes {
    return {
      "POST /door": async ({ body }) => {
        const view = (body as { readonly view?: unknown } | undefined)?.view === true;
        return (await this.#load()).link(view ? "viewer" : "operator");
      },
      "GET /door": async () => {
        const door = await this.#door;
        return { port: door?.port, sessions: door?.sessions ?? 0, held: isHeld(this.#admin) };
      },
      "DELETE /door": async () => ({ ended: await (await this.#load()).endAll(), held: isHeld(this.#admin) }),
    };
  }

  /** Opens it where the config holds it open, and again for the pages that were open when the gateway ended. */
  resume(): void {
    if (this.#admin === false) return;
    const records = isHeld(this.#admin) ? [] : [...this.#gateway.state.door.entries()];
    if (isHeld(this.#admin) || records.some(([, record]) => "hash" in record)) void this.#resume(undefined);
  }

  async #resume(before: string | undefined): Promise<void> {
    if (this.#isClosed) return;
    try {
      await (await this.#load()).resume();
    } catch (error) {
      const why = (error as Error).message;
      // The same once: it is tried as long as the gateway lives.
      if (why !== before) this.#gateway.log.error(`the operator's door is not open: ${why}`);
      if (!isHeld(this.#admin)) return;
      this.#again = setTimeout(() => void this.#resume(why), HOLD_AGAIN_MS).unref();
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#again);
    this.#certificate?.close();
    // One that could not be made was told to whoever asked for it, and does not keep the gateway from closing.
    const door = await this.#door?.catch(() => undefined);
    await door?.close();
  }

  #load(): Promise<OperatorDoor> {
    this.#door ??= this.#make().catch((error: unknown) => {
      // The next who asks finds out anew.
      this.#door = undefined;
      throw error;
    });
    return this.#door;
  }

  async #make(): Promise<OperatorDoor> {
    const admin = this.#admin;
    if (admin === false) throw new ControlError("denied", 'The config forbids the page: "admin" is false there.');
    const [{ OperatorDoor, PageFiles }, { PageSnapshots }] = await Promise.all([
      import("../../control/door/door.js"),
      import("./page-snapshots.js"),
    ]);
    const { state } = this.#gateway;
    const routes = this.#routes();
    const snapshots = new PageSnapshots(this.#gateway);
    const certificate = admin?.tls === undefined ? undefined : await this.#gateway.certificate(admin.tls);
    const door = new OperatorDoor({
      kept: state.door,
      // From the folder of the bundle's chunks, beside it.
      files: new PageFiles(fileURLToPath(new URL("../dashboard/", import.meta.url))),
      ...shownRoutes(routes),
      look: (isWhole) => snapshots.take(isWhole),
      tokens: state.adminTokens,
      metrics: (form) => metricsOf(routes, form),
      held: admin === undefined ? undefined : { ...admin.listen, hosts: admin.hosts, tls: certificate?.now },
      refused: (address, path, why) => this.#gateway.refused(address, path, why),
      clock: systemClock,
    });
    this.#certificate = certificate?.follow(door);
    return door;
  }
}

function isHeld(admin: AdminSettings | false | undefined): boolean {
  return admin !== undefined && admin !== false;
}

/** The text that `toolway metrics` prints. */
async function metricsOf(routes: ControlRoutes, format: string): Promise<string> {
  const query = new URLSearchParams({ format });
  const signal = new AbortController().signal;
  const answer = await routes["GET /metrics"]?.({ params: {}, query, body: undefined, signal });
  return (answer as { readonly text: string }).text;
}
