// The calls that a filter lets through, as they come: those that are there, then what is new, some rows a turn. While
// somebody points at them nothing moves, and what is new is counted.

import { useEffect, useRef, useState } from "preact/hooks";
import type { CallsAnswer } from "../../src/contracts/control/calls.js";
import { call } from "../door.js";
import { link, messageOf } from "../model.js";
import { added, MAX_ROWS, ROWS_A_LOOK, type ShownRows, slicesOf } from "./rows.js";

const LOOK_MS = 1_000;

/** `paused`: by its button, until it is pressed again. `over`: the pointer is on the rows. */
export type FollowHold = "no" | "paused" | "over";

interface Followed {
  readonly shown: ShownRows | undefined;
  /** How many came since the rows are held still; at most as many as a look has. */
  readonly fresh: number;
  readonly trouble: string;
}

/** For as long as the view is open. */
export function useCalls(filter: string, hold: FollowHold): Followed {
  const [shown, setShown] = useState<ShownRows>();
  const [fresh, setFresh] = useState(0);
  const [trouble, setTrouble] = useState("");
  const isLive = link.value.kind === "live";
  const last = useRef(0);
  useEffect(() => {
    last.current = 0;
    setShown(undefined);
  }, [filter]);
  useEffect(() => {
    setFresh(0);
    if (!isLive || hold === "paused") return undefined;
    let isLeft = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const take = async (answer: CallsAnswer, before: number) => {
      for (const slice of slicesOf(answer, before)) {
        if (isLeft) return;
        // What is not shown yet is asked for again where the view is held still meanwhile.
        last.current = slice.last;
        setShown((now) => added(before === 0 ? undefined : now, slice));
        await nextTurn();
      }
    };
    const look = async () => {
      try {
        const before = last.current;
        const limit = before === 0 ? MAX_ROWS : ROWS_A_LOOK;
        const path = `/calls?${filter}&limit=${limit}${before === 0 ? "" : `&after=${before}`}`;
        const answer = document.hidden ? undefined : await call<CallsAnswer>("GET", path);
        if (isLeft) return;
        if (answer !== undefined) {
          setTrouble("");
          if (hold === "over" && before !== 0) setFresh(answer.calls.length);
          else await take(answer, before);
        }
      } catch (error) {
        if (!isLeft) setTrouble(messageOf(error));
      }
      if (!isLeft) timer = setTimeout(() => void look(), LOOK_MS);
    };
    void look();
    return () => {
      isLeft = true;
      clearTimeout(timer);
    };
  }, [filter, isLive, hold]);
  return { shown, fresh, trouble };
}

/** What waits for the page is done between: a key, the next frame. */
function nextTurn(): Promise<void> {
  return new Promise((done) => setTimeout(done));
}
