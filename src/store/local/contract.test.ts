import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "vitest";
import { testStoreContract } from "../../../test/fixtures/store/contract.js";
import { openStore } from "./store.js";

const folder = mkdtempSync(join(tmpdir(), "toolway-store-contract-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
let opened = 0;

describe("the embedded store is a store [compare-and-set]", () => {
  testStoreContract({
    open: () => openStore({ dir: join(folder, String(++opened)) }),
    async reopen(store) {
      await store.close();
      return openStore({ dir: join(folder, String(opened)) });
    },
  });
});
