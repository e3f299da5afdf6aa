// Checks the chain of an audit log line by line, and says which is the first that is wrong. It reads no files, and has no
// clock: who reads them hands their lines over in order.

import { type ChainHead, type ChainLine, lineHash, NO_LINES, readLine } from "./chain.js";

/** A line that is wrong, or the place where one is missing. */
export interface WrongLine {
  readonly file: string;
  /** From 1. */
  readonly line: number;
  readonly why: string;
}

export interface ChainReport {
  readonly lines: number;
  /** The number of the first line that is there; 0 where none is. */
  readonly first: number;
  readonly last: ChainHead;
  /** Undefined where the chain holds. */
  readonly wrong: WrongLine | undefined;
  /** What is told and is no fault of the chain: torn lines, gaps, files that were removed, anchors that lie before it. */
  readonly notes: readonly string[];
}

/** Whose word an anchor is. */
export interface ChainAnchor extends ChainHead {
  readonly from: string;
}

/** Of notes of one kind; the others are a number. */
const MAX_NOTES = 100;

interface Place {
  readonly file: string;
  readonly line: number;
}

export class ChainCheck {
  readonly #anchors: readonly ChainAnchor[];
  readonly #notes: string[] = [];
  #notesLeftOut = 0;
  #lines = 0;
  #first: (ChainHead & Place) | undefined;
  #last: ChainHead = NO_LINES;
  #lastPlace: Place = { file: "", line: 0 };
  /** The hash of a line that could not be read, until the next one has said that it was torn. */
  #torn: (Place & { readonly hash: string }) | undefined;
  /** The line before what is there, as the last line about removed files says. */
  #removed: ChainHead = NO_LINES;
  #wrong: WrongLine | undefined;

  constructor(anchors: readonly ChainAnchor[]) {
    this.#anchors = anchors;
  }

  /** The number of the last line that was good; 0 before the first. */
  get lastSeq(): number {
    return this.#last.seq;
  }

  /** Without its end. Nothing is looked at after the first that is wrong. */
  line(text: string, file: string, number: number): void {
    if (this.#wrong !== undefined) return;
    const place = { file, line: number };
    const found = readLine(text);
    if (found === undefined) {
      if (this.#torn !== undefined)
        this.#fail(this.#torn, "it cannot be read, and no line after it says that it was torn");
      this.#torn = { ...place, hash: lineHash(text) };
      return;
    }
    this.#lines++;
    if (this.#first !== undefined) this.#continues(found, place);
    else if (this.#torn === undefined) this.#first = { seq: found.seq - 1, hash: found.prev, ...place };
    else {
      // Not even the first line was whole.
      this.#first = { ...NO_LINES, ...place };
      this.#continues(found, place);
    }
    if (this.#wrong !== undefined) return;
    this.#last = { seq: found.seq, hash: lineHash(text) };
    this.#lastPlace = place;
    this.#told(found, place);
    for (const anchor of this.#anchors) {
      if (anchor.seq !== found.seq || anchor.hash === this.#last.hash) continue;
      this.#fail(
        place,
        `it is not the line ${anchor.seq} that ${anchor.from} names: the log was made anew up to here or before`,
      );
    }
  }

  end(): ChainReport {
    const first = this.#first;
    if (this.#torn !== undefined) {
      this.#note(
        `${this.#torn.file}, line ${this.#torn.line}: torn, by a kill; the next start of the gateway says so.`,
      );
    }
    // One that was killed between saying so and removing a file has more than it says.
    if (this.#wrong === undefined && first !== undefined && first.seq > this.#removed.seq) {
      const missing = `lines ${this.#removed.seq + 1} to ${first.seq} are missing, and no line says that they were removed`;
      this.#fail(first, missing);
    } else if (this.#wrong === undefined && first?.seq === this.#removed.seq && first.hash !== this.#removed.hash) {
      this.#fail(first, "it does not continue the file that was removed before it");
    }
    for (const { seq, from } of this.#anchors) {
      if (first !== undefined && seq <= first.seq) {
        this.#note(`${from} names line ${seq}, which is older than what is kept: it proves nothing here.`);
      } else if (this.#last.seq < seq && this.#wrong === undefined) {
        this.#fail(
          this.#lastPlace,
          `the log ends here, at ${this.#last.seq}, and ${from} names line ${seq}: its tail was cut off`,
        );
      }
    }
    if (this.#notesLeftOut > 0) this.#notes.push(`and ${this.#notesLeftOut} more of these.`);
    const begin = first === undefined ? 0 : first.seq + 1;
    return { lines: this.#lines, first: begin, last: this.#last, wrong: this.#wrong, notes: this.#notes };
  }

  #continues({ seq, prev, kind, torn }: ChainLine, place: Place): void {
    const expected = this.#last.seq + 1;
    const broken = this.#torn;
    this.#torn = undefined;
    if (broken !== undefined) {
      if (kind === "resumed" && torn === true && prev === broken.hash && seq === expected) {
        this.#note(`${broken.file}, line ${broken.line}: torn, by a kill, as the line after it says.`);
      } else this.#fail(broken, "it cannot be read, and the line after it does not say that it was torn");
      return;
    }
    if (seq !== expected) {
      const why =
        seq > expected
          ? `${missing(expected, seq - 1)}, or stands elsewhere`
          : "it stands at another place than it was written";
      this.#fail(place, `it has the number ${seq} where ${expected} is due: ${why}`);
    } else if (prev !== this.#last.hash) {
      this.#fail(this.#lastPlace, `it was changed: the line after it, ${seq}, continues another one`);
    }
  }

  #told(line: ChainLine, place: Place): void {
    switch (line.kind) {
      case "gap":
        this.#note(
          `${place.file}, line ${place.line}: ${String(line["lost"])} lines were lost before it, since there was no room.`,
        );
        return;
      case "removed":
        this.#removed = { seq: Number(line["lastSeq"]), hash: String(line["lastHash"]) };
        return;
      case "resumed": {
        const due = line["due"] as Partial<ChainHead> | undefined;
        if (due === undefined) return;
        const why = `when the gateway started, the log did not have line ${due.seq} (${due.hash}) that it had written before: its tail was cut off or changed`;
        this.#fail(place, why);
      }
    }
  }

  #note(text: string): void {
    if (this.#notes.length < MAX_NOTES) this.#notes.push(text);
    else this.#notesLeftOut++;
  }

  #fail({ file, line }: Place, why: string): void {
    this.#wrong ??= { file, line, why };
  }
}

function missing(from: number, to: number): string {
  return from === to ? `line ${from} is missing` : `lines ${from} to ${to} are missing`;
}
