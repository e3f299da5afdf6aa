// A login at a server, from the page: the gateway waits for the browser to come back, and the page shows where it goes
// before it does.

import { useState } from "preact/hooks";
import type { ServerStatus } from "../../src/contracts/status.js";
import { isLoopback } from "../../src/runtime/network/loopback.js";
import { shellWord } from "../../src/runtime/words/shell-word.js";
import { ActButton } from "../act-button.js";
import { power } from "../model.js";
import { isSafeAddress } from "../safe-address.js";
import { Foreign, Lasts, Line } from "../words.js";

/** The browser comes back to 127.0.0.1: that is the gateway's machine only where this page came from there. */
function isNear(): boolean {
  return isLoopback(location.hostname);
}

/** Nothing where nobody logs in at this server. */
export function Login({ server: { name, credential } }: { server: ServerStatus }) {
  if (credential?.needsLogin === undefined) return null;
  if (credential.needsLogin) return <LoginButton name={name} />;
  return (
    <p class="acts">
      <span>
        <span class="state good">● Logged in</span>
        {credential.until === undefined ? (
          "."
        ) : (
          <UntilWhen at={credential.until} isRenewed={credential.isRenewed !== false} />
        )}
      </span>
      <ActButton
        act={{
          label: "Log out",
          method: "POST",
          path: `/servers/${encodeURIComponent(name)}/logout`,
          sure: "Its tools are gone until somebody logs in again.",
        }}
        line={`toolway logout ${shellWord(name)}`}
      />
    </p>
  );
}

function UntilWhen({ at, isRenewed }: { at: string; isRenewed: boolean }) {
  return (
    <>
      . Its token <Lasts at={at} is="is good" was="ended" />,{" "}
      {isRenewed ? "and is renewed by itself." : "and then somebody has to log in again."}
    </>
  );
}

export function LoginButton({ name }: { name: string }) {
  const [address, setAddress] = useState<string>();
  const line = `toolway login ${shellWord(name)}`;
  if (power.value !== "operator" || !isNear()) {
    return (
      <p>
        {isNear() ? null : "The browser comes back to the machine of the gateway. There: "}
        <Line text={line} />
      </p>
    );
  }
  return (
    <div>
      <p class="acts">
        <ActButton
          act={{ label: "Log in", method: "POST", path: `/servers/${encodeURIComponent(name)}/login/open` }}
          line={line}
          onDone={(answer) => setAddress((answer as { address: string }).address)}
        />
      </p>
      {address === undefined ? null : <Going address={address} />}
    </div>
  );
}

/** The address comes from the server, or from whom it named: who they are is shown before anybody goes there. */
function Going({ address }: { address: string }) {
  if (!isSafeAddress(address)) {
    return (
      <p class="trouble" role="alert">
        The server wants the login at an address that is neither of a site over TLS nor of this machine. It is not
        opened: <Foreign text={address.slice(0, 200)} />
      </p>
    );
  }
  return (
    <p role="status">
      <a class="button" href={address} target="_blank" rel="noopener noreferrer">
        Go on at <Foreign text={new URL(address).host} /> ↗
      </a>{" "}
      It opens in a new tab, and Toolway waits 5 minutes for it to come back.
    </p>
  );
}
