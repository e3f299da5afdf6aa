// What is said of a frame that cannot be taken.

import { ExpectedError } from "../../runtime/expected-error.js";

/** A frame that cannot be taken: why, and the id of the message that it was about. */
export class FrameError extends ExpectedError {
  override readonly name = "FrameError";
  override readonly kind = "failed";
  readonly id: string | undefined;
  /** The kind of the frame, where that is known. */
  readonly frameKind: string | undefined;

  constructor(reason: string, id?: string, frameKind?: string) {
    super(reason);
    this.id = id;
    this.frameKind = frameKind;
  }
}
