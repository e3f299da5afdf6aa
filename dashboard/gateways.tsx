// The gateways that share an engine, on every page: a call is one gateway's, and what is queued is everybody's.

import { gateway } from "./model.js";
import { Foreign, Table } from "./words.js";

export function Gateways() {
  const all = gateway.value?.engine?.gateways ?? [];
  if (all.length === 0) return null;
  const own = all.find(({ isThis }) => isThis);
  const others = all.length - 1;
  return (
    <details class="gateways">
      <summary>
        {others === 0 ? "No other gateway is" : others === 1 ? "One other gateway is" : `${others} other gateways are`}{" "}
        on this engine. Calls here are this gateway's; queues are everyone's.
      </summary>
      <Table heads={["Gateway", "Machine", "Address", "Toolway", "Config", { number: "Partitions" }, ""]}>
        {all.map(({ gateway: name, place, isThis, isLeaving, partitions, version, config }) => (
          <tr key={name}>
            <th scope="row">
              <code>{name}</code>
            </th>
            <td>
              <Foreign text={place?.host ?? ""} />
            </td>
            <td>
              <Foreign text={place?.address ?? ""} />
            </td>
            <td>{version ?? ""}</td>
            <td>
              <Foreign text={place?.file ?? ""} /> <code>{config ?? ""}</code>
            </td>
            <td class="number">{partitions}</td>
            <td>
              {isThis ? "this one" : ""}
              {isLeaving ? <span class="state calm">○ hands over</span> : null}
              {config !== undefined && own?.config !== undefined && config !== own.config ? (
                <span class="state bad">▲ another config</span>
              ) : null}
            </td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
