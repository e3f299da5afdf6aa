// What the page calls its gateway, in its head and in the title of its tab. Every config may be called toolway.json: the
// folder tells two of them apart, and the port two of folders with one name. It decides only, and knows no browser.

/** Of the only gateway, or of the first: it says nothing. */
const USUAL_PORT = "7421";

/** `path` is that of the config; undefined for what runs without one. `port` is empty where it is the one of its scheme. */
export function pageName(path: string | undefined, isBroker: boolean, port: string): string {
  const without = isBroker ? "broker" : "demo";
  const name = path === undefined ? without : path.split("/").slice(-2).filter(Boolean).join("/");
  return port === "" || port === USUAL_PORT ? name : `${name} :${port}`;
}
