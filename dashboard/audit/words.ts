// What a line of the audit log is about, in words. It decides only, and knows no browser.

import type { AuditLine } from "../../src/contracts/control/audit.js";

export function auditWords(line: AuditLine): string {
  const { kind, server, tool, method, act, target, path, lost, more, pid, torn, due, after, file } = line;
  if (act !== undefined) return `${String(act)} ${JSON.stringify(target ?? {})}`;
  switch (kind) {
    case "gap":
      return `${String(lost)} ${lost === 1 ? "line" : "lines"} lost: there was no room`;
    case "resumed": {
      const before =
        due !== undefined ? ", without lines that were written" : torn === true ? ", after a torn line" : "";
      return `a gateway began to write${pid === undefined ? "" : `, process ${String(pid)}`}${before}`;
    }
    case "file":
      return after === undefined ? "the first file" : "a new file, which goes on with the one before";
    case "removed":
      return `${String(file)} was removed for its age, or for room`;
    case "refusal":
      if (more !== undefined) return `${String(more)} more like these, in one second`;
  }
  const name = [server, tool ?? method].filter((part) => part !== undefined).join("/");
  return name === "" ? String(path ?? "") : name;
}
