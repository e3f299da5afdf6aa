// The lines that connect each agent, ready to paste. They name the environment variable, never the token: single
// quotes keep the shell from filling it in, and the client does so itself when it connects.

export interface PasteLine {
  readonly client: string;
  readonly line: string;
}

export const TOKEN_VARIABLE = "TOOLWAY_TOKEN";

/** `auth: false` for a gateway that asks for no token. */
export function pasteLines(url: string, auth: boolean): PasteLine[] {
  const header = (text: string): string => (auth ? ` --header '${text}'` : "");
  const http = `--transport http toolway ${url}${header(`Authorization: Bearer \${${TOKEN_VARIABLE}}`)}`;
  return [
    { client: "Claude Code", line: `claude mcp add ${http}` },
    {
      client: "Codex",
      line: `codex mcp add toolway --url ${url}${auth ? ` --bearer-token-env-var ${TOKEN_VARIABLE}` : ""}`,
    },
    { client: "Gemini CLI", line: `gemini mcp add ${http}` },
    {
      client: "opencode",
      line: `opencode mcp add toolway --url ${url}${header(`Authorization=Bearer {env:${TOKEN_VARIABLE}}`)}`,
    },
  ];
}
