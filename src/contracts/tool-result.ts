// The result of a tool's call as programs get it. What a server adds is there too, under its own keys.

import type { JsonObject } from "../protocol/jsonrpc.js";

interface Block extends JsonObject {
  readonly annotations?: JsonObject;
  readonly _meta?: JsonObject;
}

export interface TextBlock extends Block {
  readonly type: "text";
  readonly text: string;
}

export interface MediaBlock extends Block {
  readonly type: "image" | "audio";
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface ResourceLinkBlock extends Block {
  readonly type: "resource_link";
  readonly uri: string;
  readonly name: string;
}

export interface ResourceBlock extends Block {
  readonly type: "resource";
  readonly resource: JsonObject & {
    readonly uri: string;
    readonly mimeType?: string;
    readonly text?: string;
    readonly blob?: string;
  };
}

export type ContentBlock = TextBlock | MediaBlock | ResourceLinkBlock | ResourceBlock;

export interface ToolResult extends JsonObject {
  /** As the server gave it: nothing inside is checked. Empty where there was none. */
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: unknown;
  /** The tool itself failed; `content` says why. */
  readonly isError?: boolean;
  readonly _meta?: JsonObject;
}
