// The operator's door of a gateway, which nobody has asked for as a rule: its code is loaded when somebody does, or when
// sessions of before live.

import { fileURLToPath } from "node:url";
import type { GatewayStatus } from "../../contracts/status.js";
import type { DurableMap } from "../../contracts/store.js";
import type { DoorRecord, OperatorDoor } from "../../control/door/door.js";
import type { ControlRoutes } from "../../control/server.js";
import { systemClock } from "../../runtime/clock.js";
import { shownParts, shownRoutes } from "./shown.js";

export interface DoorOf {
  readonly state: { readonly door: DurableMap<DoorRecord> };
  status(): GatewayStatus;
}

export class LazyDoor {
  readonly #gateway: DoorOf;
  readonly #routes: () => ControlRoutes;
  #door: Promise<OperatorDoor> | undefined;

  /** `routes` are all that the control socket has. */
  constructor(gateway: DoorOf, routes: () => ControlRoutes) {
    this.#gateway = gateway;
    this.#routes = routes;
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
        return { port: door?.port, sessions: door?.sessions ?? 0 };
      },
      "DELETE /door": async () => ({ ended: await (await this.#load()).endAll() }),
    };
  }

  /** Opens it again for the pages that were open when the gateway ended. */
  async resume(): Promise<void> {
    for (const [, record] of this.#gateway.state.door.entries()) {
      if ("hash" in record) return (await this.#load()).resume();
    }
  }

  async close(): Promise<void> {
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
    const { OperatorDoor, PageFiles } = await import("../../control/door/door.js");
    const { state } = this.#gateway;
    return new OperatorDoor({
      kept: state.door,
      // From the folder of the bundle's chunks, beside it.
      files: new PageFiles(fileURLToPath(new URL("../dashboard/", import.meta.url))),
      ...shownRoutes(this.#routes()),
      look: () => shownParts(this.#gateway.status()),
      clock: systemClock,
    });
  }
}
