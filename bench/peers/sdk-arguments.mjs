// The command line of the proxies on the SDKs: what stands behind them.

/** `--era legacy|modern`, and either `--url URL` or `-- command args…`. */
export function behind() {
  const args = process.argv.slice(2);
  const value = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const [command, ...rest] = args.includes("--") ? args.slice(args.indexOf("--") + 1) : [];
  const url = value("--url");
  return {
    era: value("--era") ?? "legacy",
    url: url === undefined ? undefined : new URL(url),
    stdio: { command, args: rest },
  };
}
