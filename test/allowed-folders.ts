// Which folder of src/ may know which: the table that test/architecture.test.ts holds the imports against.

/** Folder → the folders that its files import, types included. "." is the root: the public API alone. */
export const ALLOWED: Readonly<Record<string, string>> = {
  ".": "config contracts executor/client executor/wire gateway gateway/state host observe observe/telemetry policy protocol runtime",
  "agents/import": "config config/clients config/inputs runtime runtime/words",
  "agents/run": "agents/import config config/inputs contracts runtime/words",
  "agents/setup": "agents/import config config/edit runtime runtime/words",
  cache: "contracts protocol runtime",
  catalog: "contracts protocol protocol/definitions runtime runtime/turns",
  cli: "cli/commands cli/line runtime",
  "cli/audit": "cli/gateway cli/line contracts/control observe/audit runtime/words",
  "cli/call": "cli/line cli/text contracts protocol runtime",
  "cli/code": "cli/gateway/room runtime",
  "cli/commands":
    "agents/import cli/audit cli/call cli/edit cli/executor cli/gateway cli/line cli/login cli/logs cli/mailbox cli/outbox cli/run cli/state cli/text config contracts contracts/control demo mailbox/wire protocol runtime runtime/words",
  "cli/edit":
    "agents/import cli/gateway cli/line cli/setup cli/text config config/edit contracts runtime runtime/words",
  "cli/executor": "cli/gateway cli/line cli/text config executor/allow executor/server executor/wire runtime",
  "cli/gateway":
    "agents/run agents/setup cli/code cli/gateway/room cli/line config config/inputs contracts control credentials demo gateway gateway/engine gateway/move mailbox/wire observe protocol runtime runtime/processes upstream upstream/http",
  "cli/gateway/room": "runtime runtime/memory",
  "cli/line": "protocol runtime runtime/words",
  "cli/logs": "cli/gateway cli/line cli/text config observe/server-logs runtime",
  "cli/login": "cli/line contracts credentials protocol runtime",
  "cli/mailbox":
    "cli/gateway cli/line cli/text config contracts contracts/control mailbox/pairing mailbox/peer mailbox/wire runtime runtime/words",
  "cli/run": "agents/run cli/gateway cli/line cli/text contracts runtime runtime/processes",
  "cli/outbox": "cli/gateway cli/line cli/text contracts",
  "cli/state": "cli/gateway cli/line cli/text config contracts",
  "cli/setup":
    "agents/setup cli/gateway cli/line cli/text config config/edit contracts protocol runtime runtime/processes runtime/words",
  "cli/text": "cli/gateway cli/line contracts contracts/control mailbox/wire protocol runtime runtime/words",
  config: "config/clients config/inputs contracts runtime runtime/network runtime/redact runtime/words",
  "config/clients": "runtime runtime/words",
  "config/inputs": "runtime",
  "config/edit": "config config/clients runtime runtime/redact runtime/words",
  contracts: "contracts/control protocol",
  "contracts/engine": "contracts",
  "contracts/control": "",
  control: "runtime runtime/turns",
  "control/door": "contracts control runtime",
  demo: "config",
  endpoint:
    "contracts contracts/engine endpoint/http endpoint/legacy endpoint/legacy/streams endpoint/modern endpoint/session protocol runtime runtime/memory",
  "endpoint/http":
    "contracts contracts/engine endpoint/session protocol protocol/bytes runtime runtime/containers runtime/memory runtime/network runtime/turns runtime/words sockets",
  "endpoint/legacy":
    "contracts contracts/engine endpoint/http endpoint/legacy/streams endpoint/session endpoint/stdio protocol runtime runtime/containers runtime/memory",
  "endpoint/legacy/streams": "endpoint/http endpoint/session runtime runtime/memory",
  "endpoint/mailbox": "contracts endpoint/modern endpoint/session protocol protocol/bytes runtime runtime/memory",
  "endpoint/modern":
    "contracts contracts/engine endpoint/http endpoint/session protocol runtime runtime/containers runtime/memory",
  "endpoint/session":
    "contracts contracts/engine protocol protocol/bytes runtime runtime/containers runtime/memory runtime/words",
  "endpoint/stdio":
    "contracts endpoint/modern endpoint/session protocol protocol/bytes runtime runtime/containers runtime/memory runtime/turns",
  "executor/allow": "runtime runtime/redact",
  "executor/client": "executor/wire runtime runtime/containers runtime/network sockets",
  credentials: "contracts protocol runtime runtime/network runtime/processes runtime/redact runtime/words",
  "executor/group": "contracts executor/wire runtime/redact runtime/words sockets",
  "executor/passed": "contracts executor/group executor/wire runtime sockets",
  "executor/http":
    "executor/allow executor/wire runtime runtime/containers runtime/network runtime/redact runtime/words",
  "executor/server": "executor/allow executor/http executor/wire runtime runtime/containers runtime/redact sockets",
  "executor/wire": "runtime runtime/redact runtime/words",
  gateway:
    "cache catalog config config/edit config/inputs contracts contracts/control contracts/engine control credentials endpoint endpoint/stdio executor/client executor/group executor/passed executor/wire gateway/diagnostics gateway/door gateway/engine gateway/logins gateway/mailboxes gateway/outbox gateway/placement gateway/runs gateway/sharing gateway/state mailbox/wire observe observe/calls observe/metrics observe/server-logs observe/telemetry pipeline pipeline/tasks policy protocol runtime runtime/memory runtime/processes runtime/words sockets tokens upstream upstream/http",
  "gateway/diagnostics":
    "config config/edit contracts contracts/control control gateway/sharing gateway/state observe observe/audit observe/calls observe/metrics protocol runtime runtime/words",
  "gateway/door": "contracts contracts/control control control/door runtime runtime/turns tokens",
  "gateway/engine": "catalog contracts contracts/engine policy runtime runtime/words store store/nats store/ownership",
  "gateway/hosting": "protocol runtime upstream",
  "gateway/logins": "catalog contracts control credentials pipeline protocol runtime",
  "gateway/mailboxes":
    "contracts contracts/engine endpoint gateway/state mailbox/broker mailbox/pairing mailbox/peer mailbox/shared mailbox/wire observe runtime runtime/memory sockets",
  "gateway/move":
    "contracts gateway/engine gateway/state mailbox/broker mailbox/wire runtime runtime/words store store/local store/nats store/ownership tokens",
  "gateway/outbox":
    "catalog contracts contracts/engine gateway/state observe outbox outbox/lanes outbox/shared pipeline protocol runtime",
  "gateway/placement":
    "contracts contracts/engine endpoint/stdio gateway/state pipeline protocol runtime runtime/memory upstream upstream/placed",
  "gateway/runs": "contracts policy protocol runtime runtime/processes runtime/words tokens",
  "gateway/sharing":
    "config contracts contracts/control endpoint/mailbox mailbox/share observe pipeline protocol runtime runtime/memory",
  "gateway/state":
    "contracts contracts/engine control/door credentials gateway/runs observe observe/audit pipeline/tasks policy protocol runtime runtime/redact runtime/words store store/local tokens",
  mailbox: "runtime",
  "mailbox/broker":
    "contracts mailbox mailbox/peer mailbox/wire observe runtime runtime/containers runtime/memory sockets",
  "mailbox/join": "mailbox/peer mailbox/wire runtime",
  "mailbox/peer": "mailbox/wire runtime sockets",
  "mailbox/pairing": "contracts mailbox protocol runtime runtime/words",
  "mailbox/shared":
    "contracts contracts/engine mailbox/broker mailbox/wire runtime runtime/memory runtime/turns runtime/words sockets",
  "mailbox/share": "contracts mailbox mailbox/peer mailbox/wire observe protocol runtime runtime/words",
  "mailbox/wire": "protocol protocol/bytes runtime",
  host: "config contracts gateway gateway/hosting gateway/state observe observe/telemetry policy protocol",
  observe: "contracts contracts/control observe/trace protocol runtime",
  "observe/audit": "contracts contracts/control observe protocol runtime/redact runtime/turns",
  "observe/calls": "contracts/control observe protocol runtime runtime/words",
  "observe/metrics": "contracts observe observe/audit observe/calls protocol runtime",
  "observe/server-logs": "observe runtime/words",
  "observe/telemetry": "observe observe/metrics observe/trace runtime runtime/words",
  "observe/trace": "contracts protocol",
  outbox: "contracts observe/trace outbox/lanes protocol runtime runtime/words",
  "outbox/lanes": "contracts protocol runtime",
  "outbox/shared": "contracts contracts/engine outbox outbox/lanes protocol runtime runtime/words",
  pipeline:
    "cache catalog contracts contracts/engine observe observe/trace pipeline/tasks policy protocol runtime runtime/memory runtime/words",
  "pipeline/tasks": "contracts protocol",
  policy: "contracts contracts/engine protocol runtime runtime/words",
  protocol: "protocol/bytes runtime runtime/memory runtime/network runtime/words",
  "protocol/bytes": "",
  "protocol/definitions": "protocol runtime/words",
  runtime: "runtime/memory runtime/network",
  "runtime/containers": "runtime",
  "runtime/memory": "",
  "runtime/network": "",
  "runtime/processes": "runtime",
  "runtime/redact": "",
  "runtime/turns": "runtime",
  "runtime/words": "runtime",
  sockets: "runtime runtime/network runtime/redact runtime/turns",
  store: "contracts runtime",
  "store/local": "contracts runtime store",
  "store/commits": "contracts runtime runtime/turns runtime/words store",
  "store/nats": "contracts contracts/engine runtime runtime/words store store/commits",
  "store/ownership": "contracts contracts/engine runtime store",
  tokens: "contracts runtime runtime/words",
  upstream:
    "contracts contracts/engine mailbox/join protocol protocol/definitions runtime runtime/memory runtime/redact runtime/words upstream/connection upstream/era upstream/http upstream/link upstream/lists upstream/mailbox upstream/modern upstream/placed upstream/stdio upstream/supervise",
  "upstream/connection":
    "contracts protocol protocol/bytes runtime runtime/containers runtime/memory runtime/redact upstream/era upstream/link upstream/modern upstream/supervise",
  "upstream/era": "contracts protocol runtime runtime/words upstream/link",
  "upstream/http":
    "contracts executor/wire protocol runtime runtime/containers runtime/memory runtime/network runtime/redact runtime/words upstream/era upstream/http/plain upstream/link",
  "upstream/http/plain": "",
  "upstream/link": "contracts protocol protocol/bytes runtime runtime/redact runtime/turns",
  "upstream/lists":
    "contracts protocol protocol/bytes protocol/definitions runtime runtime/turns runtime/words upstream/link",
  "upstream/mailbox":
    "contracts mailbox/join mailbox/peer mailbox/wire protocol runtime runtime/containers runtime/memory runtime/redact runtime/words upstream/link",
  "upstream/modern": "contracts protocol runtime runtime/containers upstream/era upstream/link upstream/lists",
  "upstream/placed": "contracts/engine protocol runtime runtime/memory upstream/link upstream/stdio",
  "upstream/stdio":
    "contracts protocol runtime runtime/containers runtime/memory runtime/processes runtime/redact runtime/words upstream/link",
  "upstream/supervise": "contracts protocol runtime runtime/words upstream/link",
};
