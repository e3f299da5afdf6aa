// Single requests that are not measured: sessions, lists, the first call after a start.

import { Connection } from "./replies.mjs";
import { anyRequest, callRequest, FIRST_ID, initializedNotification, initializeRequest } from "./requests.mjs";
import { verifier } from "./verify.mjs";

/** @typedef {import("./requests.mjs").To} To */

/** The result of a request. @param {To} to */
export async function ask(to, method, params) {
  const connection = await Connection.open(to.url);
  try {
    await connection.exchange(anyRequest(to, method, params).bytes);
    const at = connection.message();
    const text = at === undefined ? "{}" : connection.body.toString("utf8", at.start, at.end);
    const { result, error } = JSON.parse(text);
    if (result === undefined) throw new Error(`${method}: HTTP ${connection.status}, ${error?.message ?? "no result"}`);
    return result;
  } finally {
    connection.close();
  }
}

/** Opens a legacy session, and returns its id; undefined where the target gives none. @param {To} to */
export async function openSession(connection, to) {
  await connection.exchange(initializeRequest(to).bytes);
  if (connection.status !== 200) throw new Error(`initialize was answered with HTTP ${connection.status}.`);
  const session = connection.header("mcp-session-id");
  await connection.exchange(initializedNotification({ ...to, session }));
  if (connection.status >= 300) throw new Error(`initialized was answered with HTTP ${connection.status}.`);
  return session;
}

const echoFault = verifier({ kind: "echo" });

/** One verified call of `echo`, in a session of its own where the target wants one. @param {To} to */
export async function callOnce(to, name, withSession) {
  const connection = await Connection.open(to.url);
  try {
    const session = withSession ? await openSession(connection, to) : undefined;
    connection.id = FIRST_ID;
    await connection.exchange(callRequest({ ...to, session }, name).bytes);
    const fault = echoFault(connection);
    if (fault !== undefined) throw new Error(fault);
  } finally {
    connection.close();
  }
}
