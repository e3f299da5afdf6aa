// The clients whose config files are known, and where those are. What is in them is read by import.ts, and what the
// clients keep elsewhere of servers that are switched off by client-lists.ts.

import { existsSync } from "node:fs";
import { posix, win32 } from "node:path";

/** How a file holds its servers. */
export type ClientFormat = "mcpServers" | "vscode" | "vscode-settings" | "claude-code" | "codex" | "opencode" | "zed";

/** The machine that is searched. */
export interface Place {
  readonly home: string;
  /** The project whose files count too. */
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The clients, by the word that `--from` takes. */
export const CLIENTS = {
  "claude-code": "Claude Code",
  "claude-desktop": "Claude Desktop",
  cursor: "Cursor",
  vscode: "VS Code",
  "vscode-insiders": "VS Code Insiders",
  codex: "Codex",
  gemini: "Gemini CLI",
  qwen: "Qwen Code",
  copilot: "Copilot CLI",
  opencode: "opencode",
  windsurf: "Windsurf",
  zed: "Zed",
  cline: "Cline",
  roo: "Roo Code",
  "lm-studio": "LM Studio",
} as const;

export type ClientId = keyof typeof CLIENTS;

export interface ClientFile {
  readonly id: ClientId;
  /** Its name, as people know it. */
  readonly client: string;
  readonly file: string;
  readonly format: ClientFormat;
  /** The project that the file belongs to; its relative paths start there. */
  readonly project: string | undefined;
}

/** The files of the known clients that exist on this machine, the project's own first: they say more. */
export function findClientConfigs(place: Place): ClientFile[] {
  const seen = new Set<string>();
  return clientFiles(place).filter(({ file }) => {
    if (seen.has(file) || !existsSync(file)) return false;
    seen.add(file);
    return true;
  });
}

/** Every file that is looked for. */
export function clientFiles(place: Place): ClientFile[] {
  const { join } = place.platform === "win32" ? win32 : posix;
  const { home, cwd, env } = place;
  const appData = applicationData(place);
  const config = env["XDG_CONFIG_HOME"] || join(home, ".config");
  const codeUser = join(appData, "Code", "User");
  const storage = join(codeUser, "globalStorage");
  const files: ClientFile[] = [];
  const project = (id: ClientId, format: ClientFormat, ...path: string[]): void => {
    files.push({ id, client: CLIENTS[id], format, file: join(cwd, ...path), project: cwd });
  };
  const user = (id: ClientId, format: ClientFormat, ...path: string[]): void => {
    files.push({ id, client: CLIENTS[id], format, file: join(...(path as [string])), project: undefined });
  };

  project("claude-code", "mcpServers", ".mcp.json");
  project("cursor", "mcpServers", ".cursor", "mcp.json");
  project("vscode", "vscode", ".vscode", "mcp.json");
  project("codex", "codex", ".codex", "config.toml");
  project("gemini", "mcpServers", ".gemini", "settings.json");
  project("qwen", "mcpServers", ".qwen", "settings.json");
  project("copilot", "mcpServers", ".github", "mcp.json");
  project("opencode", "opencode", "opencode.json");
  project("opencode", "opencode", "opencode.jsonc");
  project("opencode", "opencode", ".opencode", "opencode.json");
  project("roo", "mcpServers", ".roo", "mcp.json");
  project("zed", "zed", ".zed", "settings.json");

  user("claude-code", "claude-code", env["CLAUDE_CONFIG_DIR"] || home, ".claude.json");
  user("claude-desktop", "mcpServers", appData, "Claude", "claude_desktop_config.json");
  user("cursor", "mcpServers", home, ".cursor", "mcp.json");
  user("vscode", "vscode", codeUser, "mcp.json");
  user("vscode", "vscode-settings", codeUser, "settings.json");
  user("vscode-insiders", "vscode", appData, "Code - Insiders", "User", "mcp.json");
  user("copilot", "mcpServers", env["COPILOT_HOME"] || join(home, ".copilot"), "mcp-config.json");
  user("windsurf", "mcpServers", home, ".codeium", "windsurf", "mcp_config.json");
  user("gemini", "mcpServers", geminiFolder(place), "settings.json");
  user("qwen", "mcpServers", home, ".qwen", "settings.json");
  user("codex", "codex", env["CODEX_HOME"] || join(home, ".codex"), "config.toml");
  user("opencode", "opencode", config, "opencode", "opencode.json");
  user("opencode", "opencode", config, "opencode", "opencode.jsonc");
  user("zed", "zed", place.platform === "win32" ? appData : config, "zed", "settings.json");
  user("cline", "mcpServers", storage, "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json");
  user("roo", "mcpServers", storage, "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json");
  user("lm-studio", "mcpServers", home, ".lmstudio", "mcp.json");
  user("lm-studio", "mcpServers", home, ".cache", "lm-studio", "mcp.json");
  return files;
}

/** Where Gemini CLI keeps its own files. */
export function geminiFolder({ platform, home, env }: Place): string {
  const { join } = platform === "win32" ? win32 : posix;
  return join(env["GEMINI_CLI_HOME"] || home, ".gemini");
}

function applicationData({ platform, home, env }: Place): string {
  if (platform === "win32") return env["APPDATA"] || win32.join(home, "AppData", "Roaming");
  if (platform === "darwin") return posix.join(home, "Library", "Application Support");
  return env["XDG_CONFIG_HOME"] || posix.join(home, ".config");
}
