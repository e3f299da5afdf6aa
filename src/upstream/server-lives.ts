// Who hears of starts and ends of servers, and of how their calls go.

export interface ServerLives {
  /** `idle`: it was closed for want of calls, and is wanted again. */
  started(server: string, reason: "first" | "restart" | "idle"): void;
  /** A connection that was up has ended after `ms`. `fault` is undefined where we closed it by our own will. */
  disconnected(server: string, ms: number, fault: string | undefined): void;
  /** Its breaker. */
  turned?(server: string, circuit: "open" | "closed"): void;
  /** It answered a call, the first after calls that found something wrong with it. */
  answers?(server: string): void;
}
