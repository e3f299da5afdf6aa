// Finds the error in what a program wrote before it died: rarely its last line. It is pure, and knows no program but npm,
// which tells the same error in many lines.

/** Frames of stacks, and what Node writes beneath one. A bracket by itself closes what it tells of the error. */
const FRAME = /^\s+at |^\s+File ".*", line \d|^Node\.js v\d|^\s*\^+\s*$|^\s*(?:requireStack: \[)?[\]}],?$/;

const NPM = /^npm (?:error|ERR!)/;
/** Lines of npm that name a part of the error, and not what happened. */
const NPM_DETAIL = /^npm \S+(?: (?:code|errno|syscall|path|dest|command|signal) .*| \S+)?\s*$/;
/** From here on it says what every error of its kind is followed by. */
const NPM_END = /Note that you can|In most cases you or|complete log of this run/;

/** A line of its own that begins as errors do; what stands further in is a part of something. */
const HEADLINE =
  /^(?:[\w.$]*(?:Error|Exception)\b|(?:\[?\w*error\]?|fatal|panic|uncaught|\w[\w .-]*: (?:error|fatal))\b|thread '.*' panicked|.*\b(?:cannot|not found|is required|not set)\b)/i;
/** uv and other tools draw their errors. */
const DRAWN = /^\s*[×✖✗❌]/u;
const NAMES_ERROR = /error|exception|panic|fatal|cannot|not found/i;

/** The lines from the error on, without the frames of its stack; all that is left, where none names an error. */
export function errorLines(lines: readonly string[]): string[] {
  const told = lines.filter((line) => !FRAME.test(line) && line.trim() !== "");
  if (told.some((line) => NPM.test(line))) return ofNpm(told);
  const drawn = told.findIndex((line) => DRAWN.test(line));
  if (drawn >= 0) return told.slice(drawn);
  const headline = told.findLastIndex((line) => HEADLINE.test(line));
  if (headline >= 0) return told.slice(headline);
  const named = told.findLastIndex((line) => NAMES_ERROR.test(line));
  return named >= 0 ? told.slice(named) : told.slice(-1);
}

/** The one line that says most: the first of the error. */
export function errorLine(lines: readonly string[]): string | undefined {
  return errorLines(lines)[0]?.trim();
}

/** Whether a line speaks of an error at all. */
export function namesError(line: string): boolean {
  return NAMES_ERROR.test(line);
}

/** It begins with the first line that says what happened, whatever stood before. */
function ofNpm(lines: readonly string[]): string[] {
  const own = lines.filter((line) => NPM.test(line));
  const end = own.findIndex((line) => NPM_END.test(line));
  const said = own.slice(0, end < 0 ? own.length : end);
  const telling = said.filter((line) => !NPM_DETAIL.test(line));
  return telling.length > 0 ? telling : own;
}
