// What a server's process sees of our environment: a short list of names, plus what its config entry says.
// It owns the list; it reads no files and starts nothing.

import { isOwnSecret } from "../../runtime/redact/secrets-of.js";

/**
 * Names that pass. The rule: what a program needs to find its files, its user, its language and the network,
 * and nothing that is commonly a credential. A server that needs more is given it by its entry's `env`.
 */
const NAMES: readonly string[] = [
  // Who and where.
  "HOME",
  "PATH",
  "USER",
  "LOGNAME",
  "SHELL",
  "TMPDIR",
  // How to print.
  "TERM",
  "LANG",
  "LANGUAGE",
  "TZ",
  // A screen, for servers that are bound to one. They name it, and open nothing by themselves.
  "DISPLAY",
  "WAYLAND_DISPLAY",
  // Proxies are the way out. A proxy URL may carry a password; without it a server behind that proxy reaches nothing, and
  // every program that its user starts sees it too.
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
  "http_proxy",
  "https_proxy",
  "all_proxy",
  "no_proxy",
  // Paths of a company's certificate authorities, without which that network's TLS fails.
  "NODE_EXTRA_CA_CERTS",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
];

/** Locale (LC_ALL, LC_TIME …) and the user's directories (XDG_CONFIG_HOME, XDG_RUNTIME_DIR …). */
const PREFIXES: readonly string[] = ["LC_", "XDG_"];

/** Windows programs do not start without most of these. Names there have no case. */
const WINDOWS_NAMES: readonly string[] = [
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "NUMBER_OF_PROCESSORS",
  "OS",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMDATA",
  "PROGRAMFILES",
  "PROGRAMFILES(X86)",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
  "WINDIR",
];

const exact = new Set(NAMES);
const folded = new Set([...NAMES, ...WINDOWS_NAMES].map((name) => name.toUpperCase()));

function passes(name: string, platform: NodeJS.Platform): boolean {
  if (platform === "win32") return folded.has(name.toUpperCase());
  return exact.has(name) || PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** The environment of a child: `ours` narrowed to the list, then the entry's own, which wins. */
export function childEnvironment(
  ours: NodeJS.ProcessEnv,
  entry: Readonly<Record<string, string>>,
  platform: NodeJS.Platform = process.platform,
): Record<string, string> {
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(ours)) {
    // Values that begin with "()" are functions that bash exported: code, not data.
    if (value === undefined || value.startsWith("()") || !passes(name, platform)) continue;
    env[name] = value;
  }
  for (const [name, value] of Object.entries(entry)) env[name] = value;
  // A server that had one could call every other server: they pass by no way.
  for (const name of Object.keys(env)) if (isOwnSecret(name)) delete env[name];
  return env;
}
