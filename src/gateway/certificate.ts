// The certificate of the endpoint while it runs: it is read again when its files change and when the operator reloads.
// A pair that cannot be used leaves the one before in use, and that is said.

import { readFileSync } from "node:fs";
import { watchConfig } from "../config/edit/watch.js";
import type { GatewayStatus } from "../contracts/status.js";
import type { HttpEndpoint } from "../endpoint/server.js";
import type { Log } from "../observe/log.js";
import { Fault } from "../protocol/errors.js";

/** Paths of PEM files. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/** The two files are written one after the other: a pair that does not fit yet is given so long. */
const SETTLE_MS = 1_000;

export class Certificate {
  readonly #endpoint: Pick<HttpEndpoint, "setCertificate">;
  readonly #log: Log;
  #files: CertificateFiles;
  #used: string;
  #error: string | undefined;
  #watchers: { close(): void }[] = [];
  #settling: NodeJS.Timeout | undefined;

  constructor(endpoint: Pick<HttpEndpoint, "setCertificate">, files: CertificateFiles, log: Log) {
    this.#endpoint = endpoint;
    this.#log = log;
    this.#files = files;
    this.#used = textOf(readCertificate(files));
    this.#watch();
  }

  get status(): NonNullable<GatewayStatus["certificate"]> {
    return { file: this.#files.cert, error: this.#error };
  }

  /** Reads it again, from other files where the config names others. */
  reload(files: CertificateFiles): void {
    const moved = files.cert !== this.#files.cert || files.key !== this.#files.key;
    this.#files = files;
    if (moved) this.#watch();
    this.#take();
  }

  close(): void {
    clearTimeout(this.#settling);
    for (const watcher of this.#watchers.splice(0)) watcher.close();
  }

  #watch(): void {
    this.close();
    const soon = () => {
      clearTimeout(this.#settling);
      this.#settling = setTimeout(() => this.#take(), SETTLE_MS).unref();
    };
    this.#watchers = [this.#files.cert, this.#files.key].map((file) => watchConfig(file, soon));
  }

  #take(): void {
    try {
      const pair = readCertificate(this.#files);
      const text = textOf(pair);
      const isNew = text !== this.#used;
      if (isNew) this.#endpoint.setCertificate(pair);
      this.#used = text;
      if (isNew || this.#error !== undefined) this.#log.info("the TLS certificate was read again, and is in use");
      this.#error = undefined;
    } catch (error) {
      this.#error = (error as Error).message;
      this.#log.error(`the new TLS certificate is not used, the one before goes on: ${this.#error}`);
    }
  }
}

function textOf({ cert, key }: { cert: Buffer; key: Buffer }): string {
  return `${cert.toString("latin1")}\n${key.toString("latin1")}`;
}

/** Throws what is wrong with the files. */
export function readCertificate(files: CertificateFiles): { cert: Buffer; key: Buffer } {
  const read = (what: string, path: string): Buffer => {
    try {
      return readFileSync(path);
    } catch (cause) {
      throw new Fault("invalid", `The TLS ${what} ${path} cannot be read.`, { cause });
    }
  };
  const tls = { cert: read("certificate", files.cert), key: read("key", files.key) };
  try {
    // It is loaded here, since few gateways speak TLS themselves.
    process.getBuiltinModule("node:tls").createSecureContext(tls);
  } catch (cause) {
    const why = (cause as Error).message;
    throw new Fault("invalid", `${files.cert} and ${files.key} are no certificate and key (PEM) that fit: ${why}`, {
      cause,
    });
  }
  return tls;
}
