// What `GET /config` answers, for operators: the config's text as it runs, with what is secret hidden, and what is wrong where.

/** Something that is said of one line. */
export interface ConfigRemark {
  /** Counted from 1; undefined where no line is meant. */
  readonly line: number | undefined;
  readonly text: string;
}

export interface ConfigTextAnswer {
  /** Undefined where there is no file. */
  readonly path: string | undefined;
  /** The text that is in use. Undefined where there is none, or it is too long to be shown. */
  readonly text: string | undefined;
  /** Entries that are wrong, and warnings. */
  readonly remarks: readonly ConfigRemark[];
  /** The edit that could not be applied. */
  readonly edit:
    | {
        readonly mistakes: readonly ConfigRemark[];
        /** The lines around them, as they stand in the file. */
        readonly lines: readonly { readonly line: number; readonly text: string }[];
        /** They are without any value: of a text that is no JSON, nobody can say which of them are keys. */
        readonly isMasked: boolean;
      }
    | undefined;
}
