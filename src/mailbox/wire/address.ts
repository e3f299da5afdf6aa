// Addresses: of a mailbox, which is the id of a token, and behind a `#` which of its inboxes (a token's id has no `#`); and
// of the broker that keeps it.

/** The id of the token whose address it is. */
export function ownerOf(address: string): string {
  const end = address.indexOf("#");
  return end < 0 ? address : address.slice(0, end);
}

/** Where a broker is reached, from where its gateway listens: `ws://127.0.0.1:7440`, of the endpoint `http://127.0.0.1:7440/mcp`. */
export function brokerUrlOf(endpoint: string): string {
  return endpoint.replace(/^http/, "ws").replace(/\/mcp$/, "");
}
