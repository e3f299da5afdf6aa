// What an endpoint tells its operator. It never holds a token, a session id or a body.

export type EndpointEvent =
  | {
      readonly kind: "refused";
      readonly status: 401 | 403 | 404 | 503;
      readonly path: string;
      readonly why: string;
      readonly address?: string | undefined;
    }
  | { readonly kind: "failed"; readonly error: unknown };
