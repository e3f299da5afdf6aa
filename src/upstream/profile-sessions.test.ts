import { describe, expect, it } from "vitest";
import type { AgentProfile } from "../contracts/caller.js";
import { ProfileSessions, type UsedSession } from "./profile-sessions.js";

const MINUTE = 60_000;
const profile = (): AgentProfile => ({ capabilities: {} });

class Session implements UsedSession {
  inFlight = 0;
  uses = 0;
}

function setUp() {
  const present = new Set<AgentProfile>();
  const sessions = new ProfileSessions<Session>((one) => present.has(one));
  const open = (one: AgentProfile, nowMs = 0): Session => {
    const session = new Session();
    if (sessions.makeRoom().has) sessions.add(one, session, nowMs);
    return session;
  };
  return { present, sessions, open };
}

describe("sessions beside the shared one", () => {
  it("are found by the profile, and are so many and no more [bounded] [told-truly]", () => {
    const { present, sessions, open } = setUp();
    const profiles = Array.from({ length: 5 }, profile);
    for (const one of profiles) present.add(one);
    const made = profiles.map((one) => open(one));
    expect(profiles.map((one) => sessions.find(one))).toEqual([...made.slice(0, 4), "none"]);
    expect(sessions.all).toHaveLength(4);
  });

  it("give way to another where their agents have gone and nothing is in flight", () => {
    const { present, sessions, open } = setUp();
    const profiles = Array.from({ length: 4 }, profile);
    for (const one of profiles) present.add(one);
    const made = profiles.map((one) => open(one));
    present.delete(profiles[2] as AgentProfile);
    (made[2] as Session).inFlight = 1;
    expect(sessions.makeRoom()).toEqual({ has: false, left: undefined });
    (made[2] as Session).inFlight = 0;
    // Nobody looks for room at every call.
    expect(sessions.find(profile())).toBe("none");
    sessions.look(5_000);
    expect(sessions.find(profile())).toBeUndefined();
    expect(sessions.makeRoom()).toEqual({ has: true, left: made[2] });
    expect(sessions.find(profiles[2] as AgentProfile)).toBeUndefined();
  });

  it("are not asked for again soon where the server refused them, and sooner where it was not reached", () => {
    const { present, sessions, open } = setUp();
    const [refused, unreached] = [profile(), profile()];
    present.add(refused).add(unreached);
    sessions.bar(open(refused), true, 0);
    sessions.bar(open(unreached), false, 0);
    expect([sessions.find(refused), sessions.find(unreached)]).toEqual(["none", "none"]);
    sessions.look(10_000);
    expect(sessions.find(refused)).toBe("none");
    expect(sessions.find(unreached)).toBeInstanceOf(Session);
    sessions.look(60 * MINUTE);
    expect(sessions.find(refused)).toBeInstanceOf(Session);
    sessions.bar(sessions.find(refused) as Session, true, 60 * MINUTE);
    sessions.forgive();
    expect(sessions.find(refused)).toBeInstanceOf(Session);
  });

  it("stay a while for agents that come again, and then end", () => {
    const { present, sessions, open } = setUp();
    const one = profile();
    present.add(one);
    const session = open(one);
    expect(sessions.look(20 * MINUTE)).toEqual([]);
    present.delete(one);
    expect(sessions.look(29 * MINUTE)).toEqual([]);
    session.uses++;
    expect(sessions.look(31 * MINUTE)).toEqual([]);
    expect(sessions.look(40 * MINUTE)).toEqual([]);
    expect(sessions.look(41 * MINUTE)).toEqual([session]);
    expect(sessions.find(one)).toBeUndefined();
  });

  it.each([1, 2, 3, 4, 5, 6, 7, 8])(
    "are bounded, and never end under a call or an agent, in any history: seed %i",
    (seed) => {
      let state = seed;
      const random = (below: number) => {
        state = (state * 48_271) % 2_147_483_647;
        return state % below;
      };
      const { present, sessions, open } = setUp();
      const profiles = Array.from({ length: 9 }, profile);
      const profileOfSession = new Map<Session, AgentProfile>();
      let nowMs = 0;
      const expectUnused = (left: Session) => {
        expect(left.inFlight).toBe(0);
        expect(present.has(profileOfSession.get(left) as AgentProfile)).toBe(false);
      };
      for (let step = 0; step < 2_000; step++) {
        nowMs += random(2 * MINUTE);
        const one = profiles[random(profiles.length)] as AgentProfile;
        const found = sessions.find(one);
        switch (random(6)) {
          case 0:
            present.add(one);
            break;
          case 1:
            present.delete(one);
            break;
          case 2:
            for (const left of sessions.look(nowMs)) expectUnused(left);
            break;
          case 3:
            if (found instanceof Session) found.inFlight = random(2);
            break;
          case 4:
            if (found instanceof Session) sessions.bar(found, random(2) === 0, nowMs);
            break;
          default:
            if (found === undefined) {
              const before = new Set(sessions.all);
              profileOfSession.set(open(one, nowMs), one);
              for (const left of before) if (!sessions.all.includes(left)) expectUnused(left);
            } else if (found !== "none") found.uses++;
        }
        expect(sessions.all.length).toBeLessThanOrEqual(4);
      }
    },
  );
});
