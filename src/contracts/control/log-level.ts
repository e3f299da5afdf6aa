// What the control routes about the log answer: `GET /log-level`, and `POST /log-level` with `{level, forMs?}`.

export interface LogLevelAnswer {
  readonly level: string;
  /** Until when, and what comes after; undefined where it is for good. */
  readonly until: string | undefined;
  readonly after: string | undefined;
}
