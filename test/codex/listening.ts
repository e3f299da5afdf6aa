// A program that listens for WebSockets and says where: started, waited for, and gone with the test.

import { start } from "../fixtures/processes.js";
import { Gone, until } from "../fixtures/wait.js";

const SAID = /ws:\/\/127\.0\.0\.1:[1-9]\d*/;

export interface Listening {
  readonly url: string;
  readonly pid: number;
  /** All that it wrote. */
  log(): string;
  /** SIGTERM unless told otherwise; done when it is gone. */
  stop(signal?: NodeJS.Signals): Promise<void>;
}

export async function startListening(
  command: string,
  args: readonly string[],
  more: Readonly<Record<string, string>>,
): Promise<Listening> {
  const one = start(args[0] ?? command, command, args, { ...process.env, ...more });
  const { child, log, stop } = one;
  try {
    const url = await until(`${one.what} to say where it listens`, () => {
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Gone(`${one.what} ended: ${log().slice(-2000)}`);
      return SAID.exec(log())?.[0];
    });
    return { url, pid: child.pid as number, log, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
