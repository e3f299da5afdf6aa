// The audit log: its lines, whether they are as they were written, and a file of them.

import { useEffect, useRef, useState } from "preact/hooks";
import {
  AUDIT_COLUMNS,
  type AuditAnswer,
  type AuditCheckAnswer,
  type AuditCursor,
  type AuditLine,
} from "../../src/contracts/control/audit.js";
import { csvRow } from "../../src/runtime/words/csv.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { auditWords } from "../audit/words.js";
import { call } from "../door.js";
import { FilterText } from "../filter-text.js";
import { gateway, link, messageOf, power } from "../model.js";
import { query, setQuery } from "../router.js";
import { saveFile } from "../save.js";
import { Foreign, Line, Since, Table } from "../words.js";

/** A file that a person opens; more is what the command line is for. */
const MAX_SAVED = 10_000;
/** More rows make a page slow. */
const MAX_SHOWN = 1_000;

const TEXTS = ["server", "tool", "principal"] as const;
const SINCE: readonly [value: string, ms: number, words: string][] = [
  ["1h", 3_600_000, "the last hour"],
  ["24h", 86_400_000, "the last day"],
  ["7d", 7 * 86_400_000, "the last week"],
];

export function Audit() {
  const audit = gateway.value?.audit;
  if (audit === undefined) {
    return (
      <>
        <h1>Audit</h1>
        <p class="empty">
          Audit is off: <code>"audit": {"{}"}</code> in the config keeps who called what, from the next start on.
        </p>
        <Line text="toolway config check" />
      </>
    );
  }
  return (
    <>
      <h1>Audit</h1>
      {audit.problem === undefined ? null : (
        <p class="trouble" role="alert">
          <Foreign text={`It cannot be written: ${audit.problem}`} />
        </p>
      )}
      {audit.lost === 0 ? null : (
        <p class="trouble">
          {audit.lost.toLocaleString("en")} lines were lost since the start: a line of the kind gap says where.
        </p>
      )}
      <Chain path={audit.path} seq={audit.seq} />
      <Search />
    </>
  );
}

/** Whether it is as it was written: asked for, since every file is read. */
function Chain({ path, seq }: { path: string; seq: number }) {
  const [state, setState] = useState<"idle" | "busy">("idle");
  const [report, setReport] = useState<AuditCheckAnswer>();
  const [trouble, setTrouble] = useState("");
  const check = async () => {
    setState("busy");
    setTrouble("");
    try {
      setReport(await call<AuditCheckAnswer>("GET", "/audit/verify"));
    } catch (error) {
      setTrouble(messageOf(error));
    }
    setState("idle");
  };
  return (
    <section aria-labelledby="chain">
      <h2 id="chain">The chain</h2>
      <p>
        Its last line is {seq.toLocaleString("en")}, in{" "}
        <code>
          <Foreign text={path} />
        </code>
        .
      </p>
      {report === undefined ? null : report.wrong === undefined ? (
        <p role="status">
          <span class="state good">● as it was written</span>: {report.lines.toLocaleString("en")} lines,{" "}
          {report.first.toLocaleString("en")} to {report.last.seq.toLocaleString("en")}. The last is{" "}
          <code>
            {report.last.seq}:{report.last.hash}
          </code>
          .
        </p>
      ) : (
        <p class="trouble" role="alert">
          ▲ <Foreign text={`${report.wrong.file}, line ${report.wrong.line}: ${report.wrong.why}.`} />
        </p>
      )}
      {report?.notes.map((note) => (
        <p key={note}>
          <Foreign text={note} />
        </p>
      ))}
      <p class="acts">
        {power.value === "operator" ? (
          <button type="button" disabled={state === "busy"} onClick={() => void check()}>
            {state === "busy" ? "Checking…" : "Check it"}
          </button>
        ) : null}
        <Line text="toolway audit verify" />
      </p>
      {trouble === "" ? null : (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
    </section>
  );
}

function filterOf(asked: URLSearchParams): URLSearchParams {
  const filter = new URLSearchParams();
  for (const name of [...TEXTS, "outcome"]) {
    const value = asked.get(name);
    if (value !== null && value !== "") filter.set(name, value);
  }
  if (asked.get("operator") === "true") filter.set("operator", "true");
  const since = SINCE.find(([value]) => value === asked.get("since"));
  if (since !== undefined) filter.set("sinceMs", String(Date.now() - since[1]));
  return filter;
}

function lineOf(asked: URLSearchParams, more = ""): string {
  const words = [...TEXTS, "outcome", "since"].flatMap((name) => {
    const value = asked.get(name);
    return value === null || value === "" ? [] : [`--${name} ${shellWord(value)}`];
  });
  return ["toolway audit", ...words, ...(asked.get("operator") === "true" ? ["--operator"] : []), more]
    .join(" ")
    .trim();
}

/** A part of the log, newest first, from where an earlier look stopped. */
async function look(filter: URLSearchParams, from: AuditCursor | undefined): Promise<AuditAnswer> {
  const asked = new URLSearchParams(filter);
  if (from !== undefined) {
    asked.set("file", from.file);
    asked.set("before", String(from.before));
  }
  return call<AuditAnswer>("GET", `/audit?${asked}`);
}

function Search() {
  const asked = query.value;
  const key = asked.toString();
  const [found, setFound] = useState<{
    readonly key: string;
    readonly lines: readonly AuditLine[];
    readonly next: AuditCursor | undefined;
  }>();
  const [trouble, setTrouble] = useState("");
  const [isBusy, setBusy] = useState(false);
  const isLive = link.value.kind === "live";
  const shown = found?.key === key ? found : undefined;
  const asks = useRef(key);
  asks.current = key;
  const search = async (before: readonly AuditLine[], from: AuditCursor | undefined) => {
    setBusy(true);
    setTrouble("");
    try {
      const { lines, next } = await look(filterOf(asked), from);
      // Somebody has asked for something else meanwhile: the answer to that may be there already.
      if (asks.current !== key) return;
      setFound({ key, lines: [...before, ...lines], next });
    } catch (error) {
      if (asks.current === key) setTrouble(messageOf(error));
    } finally {
      if (asks.current === key) setBusy(false);
    }
  };
  useEffect(() => {
    if (isLive) void search([], undefined);
  }, [key, isLive]);
  return (
    <section aria-labelledby="lines">
      <h2 id="lines">Lines</h2>
      <p class="filters">
        {TEXTS.map((name) => (
          <FilterText key={name} name={name} label={{ server: "Server", tool: "Tool", principal: "Agent" }[name]} />
        ))}
        <FilterText label="Outcome" name="outcome" size={10} placeholder="failed" />
        <label>
          Of{" "}
          <select
            value={asked.get("since") ?? ""}
            onChange={({ currentTarget }) => setQuery("since", currentTarget.value)}
          >
            <option value="">any time</option>
            {SINCE.map(([value, , words]) => (
              <option key={value} value={value}>
                {words}
              </option>
            ))}
          </select>
        </label>
        <label>
          <input
            type="checkbox"
            checked={asked.get("operator") === "true"}
            onChange={({ currentTarget }) => setQuery("operator", currentTarget.checked ? "true" : "")}
          />{" "}
          acts of operators
        </label>
        <Line text={lineOf(asked)} />
      </p>
      {trouble === "" ? null : (
        <p class="trouble" role="alert">
          {trouble}
        </p>
      )}
      {shown !== undefined && shown.lines.length === 0 && shown.next === undefined ? (
        <p class="empty">No line of the log fits.</p>
      ) : null}
      {shown === undefined || shown.lines.length === 0 ? null : (
        <Table heads={[{ number: "Line" }, "When", "Kind", "Who", "What", "Outcome"]}>
          {shown.lines.map((line) => (
            <Row key={line.seq} line={line} />
          ))}
        </Table>
      )}
      <p class="acts">
        {shown?.next === undefined || shown.lines.length >= MAX_SHOWN ? null : (
          <button type="button" disabled={isBusy} onClick={() => void search(shown.lines, shown.next)}>
            Search further back
          </button>
        )}
        <button type="button" disabled={isBusy || !isLive} onClick={() => void search([], undefined)}>
          Look again
        </button>
        <Save filter={() => filterOf(asked)} />
        <Line text={lineOf(asked, "--csv > audit.csv")} />
      </p>
    </section>
  );
}

/** All lines that fit, up to a bound, as a file. */
function Save({ filter }: { filter: () => URLSearchParams }) {
  const [told, setTold] = useState("");
  const save = async (form: "csv" | "jsonl") => {
    setTold("Reading…");
    try {
      const lines: AuditLine[] = [];
      let from: AuditCursor | undefined;
      do {
        const answer: AuditAnswer = await look(filter(), from);
        lines.push(...answer.lines);
        from = answer.next;
      } while (from !== undefined && lines.length < MAX_SAVED);
      const rows =
        form === "csv"
          ? [csvRow(AUDIT_COLUMNS), ...lines.map((line) => csvRow(AUDIT_COLUMNS.map((column) => line[column])))]
          : lines.map((line) => JSON.stringify(line));
      saveFile(`${rows.join("\n")}\n`, `audit.${form}`, form === "csv" ? "text/csv" : "application/x-ndjson");
      setTold(
        `${lines.length.toLocaleString("en")} lines saved${from === undefined ? "" : ", the newest: the command line has all"}.`,
      );
    } catch (error) {
      setTold(messageOf(error));
    }
  };
  return (
    <>
      <button type="button" onClick={() => void save("csv")}>
        Save as CSV
      </button>
      <button type="button" onClick={() => void save("jsonl")}>
        Save as JSON lines
      </button>
      <span role="status">{told}</span>
    </>
  );
}

function Row({ line }: { line: AuditLine }) {
  const text = (key: string) => (line[key] === undefined ? undefined : String(line[key]));
  const outcome = text("outcome") ?? text("why") ?? "";
  const rule = text("rule");
  const isBad =
    line.kind === "refusal" || line.kind === "gap" || (outcome !== "" && outcome !== "ok" && outcome !== "cancelled");
  return (
    <tr>
      <td class="number">{line.seq.toLocaleString("en")}</td>
      <td>
        <Since at={line.time} />
      </td>
      <td>{line.kind}</td>
      <td>
        <Foreign text={text("principal") ?? text("address") ?? (text("by") === undefined ? "" : `the ${text("by")}`)} />
      </td>
      <th scope="row">
        <Foreign text={auditWords(line)} />
      </th>
      <td>
        {outcome === "" && rule === undefined ? null : (
          <span class={`state ${isBad ? "bad" : "good"}`}>
            <span aria-hidden="true">{isBad ? "▲" : "●"}</span>{" "}
            <Foreign text={[outcome, rule === undefined ? "" : `by ${rule}`].filter(Boolean).join(" ")} />
          </span>
        )}
      </td>
    </tr>
  );
}
