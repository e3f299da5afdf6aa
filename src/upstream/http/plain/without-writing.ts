// Lets a general client read the answer to a request that was written before: what it writes itself goes nowhere.

import type { Socket } from "node:net";

/**
 * Swallows what is written to the socket in one stretch, from the first write on until whoever writes returns, in however
 * many pieces. `then` follows when that is over: before it, a client has not noted that it wrote, and reads nothing.
 */
export function withoutWriting(socket: Socket, then: () => void): void {
  let isBegun = false;
  const over = (): void => {
    Reflect.deleteProperty(socket, "write");
    then();
  };
  const write = (): boolean => {
    if (!isBegun) queueMicrotask(over);
    isBegun = true;
    return true;
  };
  Object.defineProperty(socket, "write", { value: write, configurable: true });
}
