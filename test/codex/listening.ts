// A program that listens for WebSockets and says where: started, waited for, and gone with the test.

import { spawn } from "node:child_process";

/** They listen within a second; half a core takes longer. */
const READY_MS = 60_000;
/** After the signal; then it is killed. */
const STOP_MS = 5_000;
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
  const child = spawn(command, args, { env: { ...process.env, ...more }, stdio: ["ignore", "pipe", "pipe"] });
  // They do not notice that we are gone.
  const kill = () => child.kill("SIGKILL");
  process.once("exit", kill);
  let output = "";
  const exited = new Promise<void>((resolve) => {
    child.once("error", (error) => {
      output += String(error);
      resolve();
    });
    child.once("exit", () => resolve());
  });
  const stop = async (signal: NodeJS.Signals = "SIGTERM") => {
    child.kill(signal);
    const timer = setTimeout(kill, STOP_MS);
    await exited;
    clearTimeout(timer);
    process.off("exit", kill);
  };
  try {
    const url = await new Promise<string>((resolve, reject) => {
      const fail = (how: string) => reject(new Error(`${args[0]} ${how}: ${output.slice(-2000)}`));
      const timer = setTimeout(() => fail("did not say where it listens"), READY_MS);
      const read = (chunk: Buffer) => {
        output += chunk.toString();
        const [said] = SAID.exec(output) ?? [];
        if (said === undefined) return;
        clearTimeout(timer);
        resolve(said);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      void exited.then(() => {
        clearTimeout(timer);
        fail("ended");
      });
    });
    return { url, pid: child.pid as number, log: () => output, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
