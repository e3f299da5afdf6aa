// What `toolway executor` says at its start: where it is, what it may reach, and what the gateway needs to be told.

import { hostname } from "node:os";
import { isLoopback } from "../../runtime/addresses.js";
import { packageVersion } from "../../runtime/version.js";
import type { Io } from "../line/io.js";
import { TOKEN_VARIABLE } from "../text/paste-lines.js";
import { oneLine, styleOf, table } from "../text/print.js";
import { hostOf, type RunPlan } from "./plan.js";

/** Rules that are shown; whoever wrote them has them all. */
const RULES_WIDTH = 200;

/** `url` is where it listens, with the port that it got. */
export function executorBanner(plan: RunPlan, url: string | undefined, io: Io): string {
  const style = styleOf(io);
  const where = plan.kind === "listen" ? [["listens on", style.bold(url ?? "")]] : dialled(plan.gateways, style.bold);
  const facts = [
    ...where,
    ["may reach", oneLine(plan.rules.join(", "), RULES_WIDTH)],
    ["token", plan.token === undefined ? "none" : `from ${TOKEN_VARIABLE}`],
  ];
  const lines = [`${style.bold("Toolway executor")} ${packageVersion()}`, "", table(facts, "  ")];
  const warnings = warningsOf(plan, url);
  if (warnings.length > 0) lines.push("", ...warnings.map((text) => style.yellow(`  warning: ${text}`)));
  if (url !== undefined) lines.push("", "In the gateway's config:", ...configLines(plan, url));
  return `${lines.join("\n")}\n`;
}

/** The first line of `--json`. */
export function executorFacts(plan: RunPlan, url: string | undefined): Record<string, unknown> {
  return {
    pid: process.pid,
    ...(plan.kind === "listen" ? { url } : { gateways: plan.gateways }),
    allow: plan.rules,
    auth: plan.token !== undefined,
  };
}

function dialled(gateways: readonly string[], bold: (text: string) => string): string[][] {
  return gateways.map((url, i) => [i === 0 ? "dials" : "", bold(url)]);
}

function configLines(plan: RunPlan, url: string): string[] {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the gateway fills it in.
  const token = plan.token === undefined ? "" : ', "token": "${OFFICE_TOKEN}"';
  // Nobody else can use the address that stands for every interface.
  const where = url.replace(/^ws:\/\/(0\.0\.0\.0|\[::\]):/, `ws://${hostname()}:`);
  return [
    `  "executors": { "office": { "url": "${where}"${token} } },`,
    '  "mcpServers": { "wiki": { "url": "http://wiki.internal/mcp", "via": "office" } }',
  ];
}

function warningsOf(plan: RunPlan, url: string | undefined): string[] {
  const found: string[] = [];
  if (plan.kind === "listen" && plan.token === undefined) {
    found.push("no token is asked for: every program on this machine can use what it may reach.");
  }
  const open = (url === undefined ? plan.kind === "connect" && plan.gateways : [url]) || [];
  for (const one of open) {
    const { protocol, hostname } = new URL(one);
    if (protocol === "ws:" && !isLoopback(hostOf(new URL(one)))) {
      found.push(`${hostname} without TLS: the token and what is asked for cross the network unencrypted.`);
    }
  }
  if (plan.rules.some((rule) => rule === "*" || rule.startsWith("*:"))) {
    found.push("a rule of * lets the gateway reach nearly everything that this machine can reach.");
  }
  return found;
}
