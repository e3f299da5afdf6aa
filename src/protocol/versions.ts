// The protocol versions that Toolway speaks.

/** Newest first. Both sides of the gateway speak all of them. */
export const LEGACY_VERSIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

export const LATEST_LEGACY = "2025-11-25";

export function isLegacyVersion(version: string): boolean {
  return LEGACY_VERSIONS.includes(version);
}
