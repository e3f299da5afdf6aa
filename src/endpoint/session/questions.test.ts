// Which gateway an answer to a question is for, by the question's id, and what is an answer.

import { expect, it } from "vitest";
import { makeMessage, parseMessage, type RequestMessage, type ResponseMessage } from "../../protocol/message.js";
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

const asked = () => {
  const questions = new SessionQuestions(ENDPOINT_LIMITS);
  const request = makeMessage({ jsonrpc: "2.0", id: 1, method: "elicitation/create" }) as RequestMessage;
  let id = "";
  const answer = questions.ask(request, { elicitation: {} }, new AbortController().signal, (text) => {
    id = (JSON.parse(text) as { id: string }).id;
  });
  const say = (members: string) =>
    questions.answered(parseMessage(`{"jsonrpc":"2.0","id":"${id}",${members}}`) as ResponseMessage);
  return { answer, say };
};

it.each([
  ['"result":null', "no object"],
  ['"result":5', "no object"],
  ['"result":[{"action":"accept"}]', "no object"],
  // Of these two some parsers read the one, and some the other.
  ['"result":{"action":"accept"},"error":{"code":-1,"message":"No."}', 'a "result" and an "error"'],
  ['"error":{"code":-1,"message":"No."},"result":null', 'a "result" and an "error"'],
])(
  "an answer with %s ends the question as one that cannot be read, and reaches no server that others use too",
  async (members, why) => {
    const { answer, say } = asked();
    const failed = expect(answer).rejects.toMatchObject({ code: "invalid", message: expect.stringContaining(why) });
    expect(say(members)).toBe(true);
    await failed;
    expect(say('"result":{"action":"accept"}')).toBe(false);
  },
);

it("an answer that is a result or an error is passed on as it is", async () => {
  for (const members of ['"result":{"action":"decline"}', '"error":{"code":-1,"message":"No."}']) {
    const { answer, say } = asked();
    expect(say(members)).toBe(true);
    expect((await answer).text).toContain(members);
  }
});
