// Cuts bodies out of frames as they were written: what is parsed and written again would lose long numbers, `1e3`, and
// members that stand twice. Works on text that JSON.parse has accepted.

import { type Member, scanMembers, scanNested } from "../../protocol/scan.js";
import { FrameError } from "./frame-error.js";

/** The body of a frame that has one of its own. */
export function bodyOf(frame: string): string {
  return textOf(frame, scanMembers(frame, 0), "body");
}

/** The body of the message in a frame. */
export function bodyOfMessage(frame: string): string {
  const { members, inner } = scanNested(frame, "message");
  only(members, "message");
  return textOf(frame, inner ?? [], "body");
}

function textOf(frame: string, members: readonly Member[], key: string): string {
  const member = only(members, key);
  return member === undefined ? "null" : frame.slice(member.start, member.end);
}

/** Of two members of one name readers may take either: such a frame is nobody's. */
function only(members: readonly Member[], key: string): Member | undefined {
  let found: Member | undefined;
  for (const member of members) {
    if (member.key !== key) continue;
    if (found !== undefined) throw new FrameError(`"${key}" stands twice in the frame`);
    found = member;
  }
  return found;
}
