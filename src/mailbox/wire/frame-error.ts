// What is said of a frame that cannot be taken.

/** A frame that cannot be taken: why, and the id of the message that it was about. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly id: string | undefined;
  /** The kind of the frame, where that is known. */
  readonly kind: string | undefined;

  constructor(reason: string, id?: string, kind?: string) {
    super(reason);
    this.id = id;
    this.kind = kind;
  }
}
