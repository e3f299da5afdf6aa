// The clients whose config files are known, and where those are. What is in them is read by import.ts.

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

export interface ClientFile {
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
  const project = (client: string, format: ClientFormat, ...path: string[]): void => {
    files.push({ client, format, file: join(cwd, ...path), project: cwd });
  };
  const user = (client: string, format: ClientFormat, ...path: string[]): void => {
    files.push({ client, format, file: join(...(path as [string])), project: undefined });
  };

  project("Claude Code", "mcpServers", ".mcp.json");
  project("Cursor", "mcpServers", ".cursor", "mcp.json");
  project("VS Code", "vscode", ".vscode", "mcp.json");
  project("Codex", "codex", ".codex", "config.toml");
  project("Gemini CLI", "mcpServers", ".gemini", "settings.json");
  project("opencode", "opencode", "opencode.json");
  project("opencode", "opencode", "opencode.jsonc");
  project("opencode", "opencode", ".opencode", "opencode.json");
  project("Roo Code", "mcpServers", ".roo", "mcp.json");
  project("Zed", "zed", ".zed", "settings.json");

  user("Claude Code", "claude-code", env["CLAUDE_CONFIG_DIR"] || home, ".claude.json");
  user("Claude Desktop", "mcpServers", appData, "Claude", "claude_desktop_config.json");
  user("Cursor", "mcpServers", home, ".cursor", "mcp.json");
  user("VS Code", "vscode", codeUser, "mcp.json");
  user("VS Code", "vscode-settings", codeUser, "settings.json");
  user("VS Code Insiders", "vscode", appData, "Code - Insiders", "User", "mcp.json");
  user("Copilot CLI", "mcpServers", env["COPILOT_HOME"] || join(home, ".copilot"), "mcp-config.json");
  user("Windsurf", "mcpServers", home, ".codeium", "windsurf", "mcp_config.json");
  user("Gemini CLI", "mcpServers", home, ".gemini", "settings.json");
  user("Codex", "codex", env["CODEX_HOME"] || join(home, ".codex"), "config.toml");
  user("opencode", "opencode", config, "opencode", "opencode.json");
  user("opencode", "opencode", config, "opencode", "opencode.jsonc");
  user("Zed", "zed", place.platform === "win32" ? appData : config, "zed", "settings.json");
  user("Cline", "mcpServers", storage, "saoudrizwan.claude-dev", "settings", "cline_mcp_settings.json");
  user("Roo Code", "mcpServers", storage, "rooveterinaryinc.roo-cline", "settings", "mcp_settings.json");
  user("LM Studio", "mcpServers", home, ".lmstudio", "mcp.json");
  user("LM Studio", "mcpServers", home, ".cache", "lm-studio", "mcp.json");
  return files;
}

function applicationData({ platform, home, env }: Place): string {
  if (platform === "win32") return env["APPDATA"] || win32.join(home, "AppData", "Roaming");
  if (platform === "darwin") return posix.join(home, "Library", "Application Support");
  return env["XDG_CONFIG_HOME"] || posix.join(home, ".config");
}
