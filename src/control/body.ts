// What stands in the body of a request to control's routes; what is wrong with it is told by its name.

import { ControlError } from "./server.js";

export function demandText(value: unknown, name: string): string {
  if (typeof value !== "string") throw new ControlError("invalid", `"${name}" is a string.`);
  return value;
}
