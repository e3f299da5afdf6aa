// An address of a mailbox: the id of a token, and behind a `#` which of its inboxes. A token's id has no `#`.

/** The id of the token whose address it is. */
export function ownerOf(address: string): string {
  const end = address.indexOf("#");
  return end < 0 ? address : address.slice(0, end);
}
