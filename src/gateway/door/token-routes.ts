// Tokens as the operator asks for them: those of agents and of whoever else dials in, and those of the operator's door,
// which are in a book of their own. An id is in one of the two.

import { ADMIN_POWERS, type AdminPower } from "../../contracts/settings.js";
import { demandText } from "../../control/body.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import { isoTime, systemClock } from "../../runtime/clock.js";
import { parseExpires, type TokenBook, type TokenInfo } from "../../tokens/tokens.js";

interface Books {
  readonly tokens: TokenBook;
  readonly adminTokens: TokenBook;
}

export function tokenRoutes({ tokens, adminTokens }: Books): ControlRoutes {
  /** One that is in neither is told so by the first. */
  const bookOf = (id: string) => (adminTokens.roleOf(id) !== undefined && id !== "default" ? adminTokens : tokens);
  return {
    "GET /tokens": () => ({
      tokens: [
        ...tokens.list().map(({ role, ...rest }) => shown(rest, { role })),
        ...adminTokens
          .list()
          .filter(({ source }) => source === "created")
          .map(({ role, ...rest }) => shown(rest, { admin: role })),
      ],
    }),
    "GET /tokens/default": () => ({ token: tokens.defaultToken() }),
    "POST /tokens": async ({ body }) => {
      const { id, role, admin, expires, names, maySendTo } = (body ?? {}) as Readonly<Record<string, unknown>>;
      const nowMs = systemClock.wall();
      const end = expires === undefined ? undefined : parseExpires(demandText(expires, "expires"), nowMs);
      const made = { id: demandText(id, "id"), expires: end };
      const other = admin === undefined ? adminTokens : tokens;
      if (made.id !== "default" && other.has(made.id)) {
        throw new ControlError("exists", `"${made.id}" has a token already, of another kind. Choose another id.`);
      }
      if (admin !== undefined) {
        if (role !== undefined || names !== undefined || maySendTo !== undefined) {
          throw new ControlError("invalid", 'A token with "admin" opens the operator\'s door, and has nothing else.');
        }
        return { token: await adminTokens.create({ ...made, role: powerIn(admin) }, nowMs) };
      }
      const more = {
        role: demandText(role, "role"),
        names: texts(names, "names"),
        maySendTo: maySendTo === "any" ? ("any" as const) : texts(maySendTo, "maySendTo"),
      };
      return { token: await tokens.create({ ...made, ...more }, nowMs) };
    },
    "POST /tokens/:id/rotate": async ({ params, body }) => {
      const id = params["id"] ?? "";
      if (bookOf(id) === adminTokens && (body as { admin?: unknown } | undefined)?.admin !== true) {
        throw new ControlError(
          "denied",
          `"${id}" is a token of the operator's door: \`toolway token rotate\` does it.`,
        );
      }
      const { token, oldUntil } = await bookOf(id).rotate(id, systemClock.wall());
      return { token, oldSecretUntil: isoTime(oldUntil) };
    },
    "DELETE /tokens/:id": async ({ params }) => {
      const id = params["id"] ?? "";
      await bookOf(id).revoke(id);
      return { revoked: id };
    },
  };
}

/**
 * The same for a page: it makes nobody a way in here, who then would stay when its session has ended. To end one is no such
 * thing.
 */
export function tokenRoutesOfPage(routes: ControlRoutes): ControlRoutes {
  const withoutAdmin = (key: string): ControlRoutes => ({
    [key]: (request) => {
      if ((request.body as { admin?: unknown } | undefined)?.admin === undefined) return routes[key]?.(request);
      throw new ControlError(
        "denied",
        "Tokens of this door are made on the command line: `toolway token create --admin`.",
      );
    },
  });
  return { ...withoutAdmin("POST /tokens"), ...withoutAdmin("POST /tokens/:id/rotate") };
}

function powerIn(admin: unknown): AdminPower {
  const found = ADMIN_POWERS.find((power) => power === admin);
  if (found === undefined) throw new ControlError("invalid", `"admin" is one of ${ADMIN_POWERS.join(", ")}.`);
  return found;
}

function shown({ id, names, maySendTo, source, created, expires, oldUntil }: Omit<TokenInfo, "role">, opens: object) {
  const times = { createdAt: isoTime(created), expiresAt: isoTime(expires), oldSecretUntil: isoTime(oldUntil) };
  return { id, ...opens, names, maySendTo, source, ...times };
}

function texts(value: unknown, name: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value)) throw new ControlError("invalid", `"${name}" is an array of strings.`);
  return value.map((one) => demandText(one, name));
}
