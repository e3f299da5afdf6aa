// What to do where there are no servers yet.

import { Line } from "../words.js";

export function NoServers() {
  return (
    <>
      <p class="empty">No servers yet.</p>
      <p>
        <Line text="toolway import --write" /> takes those of your clients;
      </p>
      <p>
        <Line text="toolway add NAME COMMAND…" /> adds one.
      </p>
    </>
  );
}
