// Where a broker is reached, from where its gateway listens.

/** `ws://127.0.0.1:7440`, of the endpoint `http://127.0.0.1:7440/mcp`. */
export function brokerUrlOf(endpoint: string): string {
  return endpoint.replace(/^http/, "ws").replace(/\/mcp$/, "");
}
