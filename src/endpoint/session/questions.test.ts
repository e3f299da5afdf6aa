// Which gateway an answer to a question is for, by the question's id.

import { expect, it } from "vitest";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import { ENDPOINT_LIMITS } from "./limits.js";
import { askersOf, SessionQuestions } from "./questions.js";

function idFrom(gateway: string | undefined): string {
  const request = makeMessage({ jsonrpc: "2.0", id: 1, method: "roots/list" }) as RequestMessage;
  let text = "";
  const over = new AbortController();
  new SessionQuestions(ENDPOINT_LIMITS, gateway)
    .ask(request, { roots: {} }, over.signal, (sent) => (text ||= sent))
    .catch(() => {});
  over.abort();
  return (JSON.parse(text) as { id: string }).id;
}

it("an answer is for the one gateway that asked, for none where that is gone, and for any where the id names none [session-split]", () => {
  const others = ["ada", "bob", "cem"];
  for (const gateway of others) {
    const id = idFrom(gateway);
    expect(id).not.toContain(gateway);
    expect(askersOf(id, others)).toEqual([gateway]);
    expect(
      askersOf(
        id,
        others.filter((one) => one !== gateway),
      ),
    ).toEqual([]);
  }
  // Of a gateway of an older version, say.
  for (const id of [idFrom(undefined), 7, null]) expect(askersOf(id, others)).toEqual(others);
});
