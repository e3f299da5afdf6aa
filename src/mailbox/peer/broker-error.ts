// Why a broker did not do what it was asked. It stands by itself, so that whoever tells the two apart need not load the
// line, which is loaded when the first mailbox is used.

import { ExpectedError } from "../../runtime/expected-error.js";

/** The broker said no. */
export class BrokerRefusal extends ExpectedError {
  override readonly name = "BrokerRefusal";
  override readonly kind = "failed";
  readonly reason: string;
  /** Coming back makes no sense: the token or the hello was refused. */
  readonly final: boolean;

  constructor(reason: string, final = false) {
    super(reason);
    this.reason = reason;
    this.final = final;
  }
}

/** There is no line, or not any more: what was not answered may have been taken. */
export class BrokerLost extends ExpectedError {
  override readonly name = "BrokerLost";
  override readonly kind = "failed";
}
