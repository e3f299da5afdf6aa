// Keys of other clients' config files that mean nothing here. An existing file must work unchanged, so these are
// passed over; every other unknown key is reported.

/** Top level: only those that are near a key of ours, or so usual that they deserve no thought. */
export const FOREIGN_TOP_KEYS: ReadonlySet<string> = new Set(["inputs", "version", "rules", "mcp", "projects"]);

/** In a server's entry. */
export const FOREIGN_ENTRY_KEYS: ReadonlySet<string> = new Set([
  // Approval, which agents do themselves: Cline, Roo, Windsurf, Gemini CLI, Kiro, Codex.
  "alwaysAllow",
  "autoApprove",
  "default_tools_approval_mode",
  // Time limits, whose unit and meaning differ by client; ours are connectTimeoutMs and callTimeoutMs.
  "timeout",
  "networkTimeout",
  "initTimeout",
  "initializationTimeout",
  "startup_timeout_sec",
  "startup_timeout_ms",
  "tool_timeout_sec",
  // Words about the server.
  "id",
  "name",
  "title",
  "description",
  "icon",
  "version",
  "gallery",
  "registry",
  "source",
  "settings",
  "extensionName",
  "instructions",
  "note",
  "notes",
  "comment",
  "_comment",
  "//",
  // Sign-in that the client does itself, and its sandbox and debugging: VS Code, Cursor, Claude Code, Gemini CLI.
  "oauth",
  "auth",
  "authProviderType",
  "headersHelper",
  "targetAudience",
  "targetServiceAccount",
  "sandbox",
  "sandboxEnabled",
  "dev",
  // The rest: file watching, transports under another name (a URL is tried both ways here), when to load.
  "watchPaths",
  "transport",
  "transportType",
  "alwaysLoad",
  "required",
  "capabilities",
  "roots",
  "metadata",
  "scope",
]);

/** They narrow the tools in the client that reads them. Not applied here, so it has to be said. */
export const NARROWING_KEYS: ReadonlySet<string> = new Set([
  "includeTools",
  "excludeTools",
  "disabledTools",
  "enabledTools",
  "enabled_tools",
  "disabled_tools",
  "allowedTools",
  "disallowedTools",
]);

/** Other words for keys of ours, too far from them to be typos. */
export const SYNONYMS: Readonly<Record<string, string>> = {
  environment: "env",
  environmentVariables: "env",
  cmd: "command",
  executable: "command",
  arguments: "args",
  workingDirectory: "cwd",
  working_directory: "cwd",
  uri: "url",
  endpoint: "url",
  baseUrl: "url",
  http_headers: "headers",
  httpHeaders: "headers",
  requestHeaders: "headers",
};
