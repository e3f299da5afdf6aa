// Room on disk, claimed before LMDB writes. Owns the length of the data file; knows nothing of what is in it.
//
// Why: in lmdb 3.5 a write that meets a full disk overruns a buffer of its error message and can abort the
// process. So blocks are written (as zeros) ahead of LMDB's last page by us, where ENOSPC is an ordinary error,
// and LMDB only ever writes where there is room. Called only while LMDB writes nothing, before it begins a
// commit: two writers at the file's end would overwrite each other.

import { closeSync, fstatSync, ftruncateSync, openSync, statfsSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { MIB } from "../../runtime/sizes.js";
import { diskFull, isNoRoom, toStoreError } from "../store-error.js";

/** Grown in steps, so that claiming is rare; small enough (about a millisecond) for the main thread. */
const STEP_BYTES = 1 * MIB;
const ZEROS = Buffer.alloc(64 * 1024);

/**
 * File systems that overwrite in place: what is claimed stays ours (ext2–4, XFS, tmpfs). On all others (btrfs, ZFS,
 * APFS, overlays …) an overwrite may need new blocks, so the free space is looked at before each commit too.
 */
const IN_PLACE: ReadonlySet<number> = new Set([0xef53, 0x58465342, 0x01021994]);

export class Space {
  readonly #path: string;
  readonly #fd: number;
  readonly #inPlace: boolean;
  #bytes: number;

  constructor(path: string) {
    this.#path = path;
    this.#fd = openSync(path, "r+");
    this.#bytes = fstatSync(this.#fd).size;
    this.#inPlace = process.platform === "linux" && IN_PLACE.has(statfsSync(dirname(path)).type);
  }

  /** The length of the data file. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Makes sure that `more` bytes after `end` can be written. Throws StoreError `disk-full`. */
  claim(end: number, more: number): void {
    if (!this.#inPlace) {
      const { bavail, bsize } = statfsSync(dirname(this.#path));
      if (bavail * bsize < more) throw diskFull(this.#path);
    }
    const need = end + more;
    if (need <= this.#bytes) return;
    // LMDB may have gone past our claim after all; the file's own length is what counts.
    this.#bytes = fstatSync(this.#fd).size;
    if (need <= this.#bytes) return;
    if (!this.#grow(Math.ceil(need / STEP_BYTES) * STEP_BYTES) && !this.#grow(need)) throw diskFull(this.#path);
  }

  close(): void {
    closeSync(this.#fd);
  }

  #grow(target: number): boolean {
    const before = this.#bytes;
    let at = before;
    try {
      while (at < target) at += writeSync(this.#fd, ZEROS, 0, Math.min(ZEROS.length, target - at), at);
    } catch (error) {
      // Give back what does not help us: others need room too.
      ftruncateSync(this.#fd, before);
      if (isNoRoom(error)) return false;
      throw toStoreError(error, this.#path);
    }
    this.#bytes = at;
    return true;
  }
}
