// Finds which request of ours a line answers, by looking at its ends only: for lines too long to be read.

const HEAD = Buffer.from('{"jsonrpc":"2.0","id":');
const RESULT_FIRST = /^\{"(?:result|error)":/;
const AFTER_ID = /^(\d{1,16}),"(?:result|error)":/;
const ID_LAST = /,"id":(\d{1,16})\}\s*$/;

/** As far as the anchored patterns reach. */
const HEAD_BYTES = 64;
const TAIL_BYTES = 64;

/**
 * The id that a response carries, where it stands first (`{"jsonrpc":"2.0","id":N,"result":…`) or last
 * (`{"result":…,"id":N}`); `head` and `tail` are the ends of one line and may overlap. In valid JSON neither can be
 * part of a string or of an inner object: the first is anchored to the start; before the last brace, an unescaped
 * quote and a comma can only belong to the outermost object. A server's own request has `"method"` and never fits.
 */
export function answeredId(head: Buffer, tail: Buffer): number | undefined {
  const start = head.toString("latin1", 0, HEAD_BYTES);
  if (head.length >= HEAD.length && head.compare(HEAD, 0, HEAD.length, 0, HEAD.length) === 0) {
    const id = AFTER_ID.exec(start.slice(HEAD.length))?.[1];
    return id === undefined ? undefined : Number(id);
  }
  if (!RESULT_FIRST.test(start)) return undefined;
  const id = ID_LAST.exec(tail.toString("latin1", Math.max(0, tail.length - TAIL_BYTES)))?.[1];
  return id === undefined ? undefined : Number(id);
}
