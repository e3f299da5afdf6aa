// The result of a tool call as a person reads it: text plainly, the rest by a line that says what it is.

import { isObject } from "../../protocol/jsonrpc.js";

export function resultText(result: unknown): string {
  if (!isObject(result)) return JSON.stringify(result, null, 2) ?? "";
  const { content, structuredContent } = result;
  const blocks = Array.isArray(content) ? content : [];
  if (blocks.length === 0) {
    return structuredContent === undefined ? "(no content)" : JSON.stringify(structuredContent, null, 2);
  }
  return blocks.map(blockText).join("\n");
}

function blockText(block: unknown): string {
  if (!isObject(block)) return JSON.stringify(block) ?? "";
  switch (block["type"]) {
    case "text":
      return String(block["text"] ?? "");
    case "image":
    case "audio":
      return `[${block["type"]}, ${String(block["mimeType"] ?? "unknown type")}, ${base64Size(block["data"])} bytes; --json has it]`;
    case "resource_link":
      return `[resource ${String(block["uri"] ?? "")}]`;
    case "resource": {
      const resource = isObject(block["resource"]) ? block["resource"] : {};
      if (typeof resource["text"] === "string") return resource["text"];
      return `[resource ${String(resource["uri"] ?? "")}, ${base64Size(resource["blob"])} bytes; --json has it]`;
    }
    default:
      return JSON.stringify(block);
  }
}

function base64Size(data: unknown): number {
  return typeof data === "string" ? Buffer.byteLength(data, "base64") : 0;
}
