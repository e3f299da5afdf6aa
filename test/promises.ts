// What Toolway promises, as data. Tests cite a promise by its id in square brackets in their names.

export interface Promised {
  readonly id: string;
  readonly text: string;
  /** `planned`: not made yet, so no test needs to show it. */
  readonly status: "made" | "planned";
}

export const PROMISES: readonly Promised[] = [
  {
    id: "ack-is-durable",
    text: "A write that was acknowledged or called queued is on disk: no kill -9 of any part loses it.",
    status: "made",
  },
  {
    id: "no-double-effect",
    text: "Where the server honours the idempotency key, or the sharer journals, an effect happens once.",
    status: "made",
  },
  {
    id: "unknown-is-said",
    text: "A call that may have happened and cannot be asked about is reported as unknown, never repeated, never called failed.",
    status: "made",
  },
  {
    id: "lane-order",
    text: "Writes of one lane arrive in order, live ones included.",
    status: "made",
  },
  {
    id: "menu-survives",
    text: "Tools stay listed while their server is down, from disk after a restart of the gateway too.",
    status: "made",
  },
  {
    id: "menu-current",
    text: "A list that an agent asks for is as its server has it now, or no older than the server promised, two seconds where it promised nothing; a name that is new is found.",
    status: "made",
  },
  {
    id: "setup-keeps",
    text: "Setting up a client changes nothing in its config but our entry, which is shown first; twice is once; taking it out leaves what others wrote, and ends its token. No token stands in a client's file.",
    status: "made",
  },
  {
    id: "one-bad-server",
    text: "A server that hangs, floods, lies or dies never delays or breaks calls to another.",
    status: "made",
  },
  {
    id: "bad-entry-alone",
    text: "An entry of the config that is wrong in itself is the state of its server alone: the others run, and status, log and agents are told why.",
    status: "made",
  },
  {
    id: "only-is-all",
    text: "Where an entry says which tools of a server are shown, no other is listed or can be called, and a mistake in it shows none.",
    status: "made",
  },
  {
    id: "under-way",
    text: "A change of context narrows what is begun from then on: a call or a task that is under way is not touched, and its agent can see to it.",
    status: "made",
  },
  {
    id: "menu-narrows",
    text: "A menu is a part of what the role allows and never more; it lists what a call allows, and what it hides is refused, by the rule that hides it.",
    status: "made",
  },
  {
    id: "restart-unseen",
    text: "Server crash: the next call works. Gateway restart: sessions go on.",
    status: "made",
  },
  {
    id: "token-unseen",
    text: "An expired upstream token is renewed and the call succeeds once.",
    status: "made",
  },
  {
    id: "tokens-apart",
    text: "The token that an agent shows goes to no server; the challenge of a server reaches no agent as if it were the gateway's; without a credential of its own a request goes out without one.",
    status: "made",
  },
  {
    id: "login-guarded",
    text: "A login takes no step that an authorization server, a page or a document makes unsafe: an address that is not https or nearer than the server, another issuer, a state that is not its own, what is too large or too slow. It is refused, and the reason is told.",
    status: "made",
  },
  {
    id: "bounded",
    text: "No input, peer or load makes memory, file descriptors or processes grow without a limit.",
    status: "made",
  },
  {
    id: "no-orphans",
    text: "Every child and grandchild is gone after stop, crash or SIGKILL of the gateway.",
    status: "made",
  },
  {
    id: "drain",
    text: "SIGTERM under load: no call that ends within the drain limit fails; streams get their end.",
    status: "made",
  },
  {
    id: "token-ends",
    text: "What a token holds open (streams, subscriptions, an executor's socket) ends within 5 s of its end, whether it was revoked or expired, and whatever the clock does.",
    status: "made",
  },
  {
    id: "run-own",
    text: "An agent that `toolway run` starts has an endpoint, a principal and a secret of its own. The secret is in no argument, outlives a restart of the gateway, and ends within 5 s of the run, however that ended.",
    status: "made",
  },
  {
    id: "run-secret",
    text: "No variable, argument or file that a run gives its agent holds a credential of a server, and no server's process gets the secret of a run.",
    status: "made",
  },
  {
    id: "run-foreground",
    text: "The agent of a run has the terminal, the signals and the exit code as if it had been started alone.",
    status: "made",
  },
  {
    id: "run-clean",
    text: "A run adds to what the user has configured, changes none of it, and leaves nothing behind, also after kill -9.",
    status: "made",
  },
  {
    id: "pages",
    text: "A web page reads the gateway's answers only where the config names its origin.",
    status: "made",
  },
  {
    id: "one-reading",
    text: "What a request asks for is what was judged: one that another parser may read otherwise, by a name that stands twice or in other letters, is refused.",
    status: "made",
  },
  {
    id: "crossed-never",
    text: "Two callers with the same JSON-RPC id never see each other's reply.",
    status: "made",
  },
  {
    id: "eras-meet",
    text: "Between agents and servers of either era a message arrives as it would without a gateway, or docs/protocol.md says why it does not.",
    status: "made",
  },
  {
    id: "tasks-apart",
    text: "A task is its principal's alone, at every path and in both eras: to others it is unknown, not listed and not told of.",
    status: "made",
  },
  {
    id: "receipts-apart",
    text: "A receipt is its principal's alone, as a tool's answer, as a resource and as a task: to others it is unknown.",
    status: "made",
  },
  {
    id: "right-gateway",
    text: "A command talks to the gateway that its line or its folder names; where several could be meant it names them, asks none, and gives out no token.",
    status: "made",
  },
  {
    id: "documents-true",
    text: "Commands, options, keys, paths, links and figures in the documents are the program's, in the package too.",
    status: "made",
  },
  {
    id: "state-moves",
    text: 'What a gateway keeps is where its config\'s "state" says, also after the file was moved.',
    status: "made",
  },
  {
    id: "secrets-unseen",
    text: "A secret of a server's entry that the server prints is redacted in status, doctor and log, and the line is not shown to agents.",
    status: "made",
  },
  {
    id: "control-apart",
    text: "The operator's door opens to its own links and tokens, each for what its power is; no other token opens it, and none of it opens anything for an agent.",
    status: "made",
  },
  {
    id: "calls-recorded",
    text: "Every call ends as one record: who, in which role, by which client, which tool, how long and where that time went, what came of it. No argument and no result is in it, and a log whose reader is stuck delays no call.",
    status: "made",
  },
  {
    id: "bodies-unkept",
    text: "Arguments and results are kept while a person records, in memory alone, within bounds, without the secrets of the server's entry, and gone when the time is over; viewers are never shown them.",
    status: "made",
  },
  {
    id: "audit-tells",
    text: "The audit log has a line for each call, refusal, kept write that ended later and act of an operator. A line that was changed, taken out or put elsewhere is named, so is a tail that was cut off where its head or an anchor is kept; what found no room is counted, and no line is written twice.",
    status: "made",
  },
  {
    id: "metrics-agree",
    text: "Numbers are made of the records of calls: what the server took and what was ours are told apart, every refusal has its rule, what found no label is counted, and no name that an agent made up is one.",
    status: "made",
  },
  {
    id: "spans-by-convention",
    text: "A call is a span of the agent's kind and one below it for each sending, named by method and a tool that its server lists; a failure is a code and never a message.",
    status: "made",
  },
  {
    id: "config-kept",
    text: "What a user or a client wrote is kept: edits touch nothing else, and what a client switched off, allowed or made safe is heeded or told.",
    status: "made",
  },
  {
    id: "terminal-inert",
    text: "On a terminal no text of a server moves the cursor, changes colours or the title, or hides what stands there: it is made visible.",
    status: "made",
  },
  {
    id: "host-1",
    text: "A call that is made again after a crash goes out on the new connection, never on the one that was lost.",
    status: "made",
  },
  {
    id: "host-2",
    text: "A restart ends the whole process group and the connection for certain, before the next one is begun.",
    status: "made",
  },
  {
    id: "host-3",
    text: "Faults are told apart by where they arose, never by the words of a message.",
    status: "made",
  },
  {
    id: "host-4",
    text: "A call is made again only where it never left, or is known to do no harm twice; at most once. Otherwise its outcome is said to be unknown.",
    status: "made",
  },
  {
    id: "host-5",
    text: "A breaker whose time is over lets exactly one call through.",
    status: "made",
  },
  {
    id: "host-6",
    text: "Only faults of transport and protocol open a breaker; what a server answers, errors of tools included, never does.",
    status: "made",
  },
  {
    id: "host-7",
    text: "One crash is one restart and one fault, however many calls were in flight.",
    status: "made",
  },
  {
    id: "host-8",
    text: "A private result is never another principal's; what is kept is bounded in time, bytes and number; only marked tools are; identical calls at one time are one; a refused call gets nothing of it.",
    status: "made",
  },
  {
    id: "host-9",
    text: "What a host lists is what a call would allow, all pages of it, and is still there while the breaker is open.",
    status: "made",
  },
  {
    id: "host-10",
    text: "Discovery asks all servers at once with a deadline for each, tells failures inline, starts no lazy server, and hides what a call would refuse.",
    status: "made",
  },
  {
    id: "host-11",
    text: "Without a guard the rules of roles hold; with one, whatever is no clear allow is a deny.",
    status: "made",
  },
  {
    id: "host-12",
    text: "A pin is the hash of a tool's whole definition, on disk; a changed tool is hidden and refused, from the first call to the changed program on, until somebody accepts it.",
    status: "made",
  },
  {
    id: "host-13",
    text: "A spawn that fails leaves nothing behind, and a server in another's place begins after that one's end.",
    status: "made",
  },
  {
    id: "host-14",
    text: "An ejected server is seen in status, log and answers, and is tried again by reload, or by itself where the config says so.",
    status: "made",
  },
  {
    id: "told-truly",
    text: "A server is told what the agents that call it can be asked, wherever that is known before it is started; nobody is asked what they did not declare, and the server hears so at once.",
    status: "made",
  },
  {
    id: "told-why",
    text: "A server that does not come up is told of at once: which one, why, in its own words where it has any, and what to do, by where the fault arose.",
    status: "made",
  },
  {
    id: "own-era",
    text: "A server of both eras can ask its agents as it could without us: over HTTP each agent meets it in the agent's own era, and an entry may name the era.",
    status: "made",
  },
  {
    id: "status-true",
    text: "What the operator is told of the gateway is so now: what is hidden, cannot be reached, fits nothing, has no effect or waits for a restart is named, with what to do about it.",
    status: "made",
  },
  {
    id: "agent-1",
    text: "A write has its key, and both are on disk, before its first byte leaves.",
    status: "made",
  },
  {
    id: "agent-2",
    text: "Writes of a lane leave in one order, those that an agent waits for included.",
    status: "made",
  },
  {
    id: "agent-3",
    text: "A write that its server refuses at last is kept with the reason: its receipt tells the agent, the operator sees it and can send it again.",
    status: "made",
  },
  {
    id: "agent-4",
    text: "Each answer to a write is classified by itself: 408, 425 and 429, an error within a result, and what cannot be read.",
    status: "made",
  },
  {
    id: "agent-5",
    text: "A credential that is refused holds the writes that need it, and no others, until there is a new one.",
    status: "made",
  },
  {
    id: "agent-6",
    text: "Every wait for a server has an end: an agent has its result or a receipt within a minute, however long its server hangs.",
    status: "made",
  },
  {
    id: "agent-7",
    text: "A 500 may have happened, and a reply over SSE is a reply.",
    status: "made",
  },
  {
    id: "agent-8",
    text: "A token is compared by its hash, in constant time; a foreign Host or Origin is refused before it is looked at.",
    status: "made",
  },
  {
    id: "agent-9",
    text: "No upstream credential is in the environment of an agent, or in that of anything it starts.",
    status: "made",
  },
  {
    id: "agent-10",
    text: "A refused credential keeps the list that is known, and a new one reads it again; lists are read to their last page; a change is one of the whole definition, and not of names.",
    status: "made",
  },
  {
    id: "agent-11",
    text: "The protocol is spoken whole: the version that agent and server agree on, notifications, batches where they exist, headers.",
    status: "made",
  },
  {
    id: "agent-12",
    text: "Streams have ids, are resumed where they broke, and hold a bounded number of bytes for whoever is away.",
    status: "made",
  },
  {
    id: "agent-13",
    text: "At the end of a gateway deliveries end first, then what agents wait for is answered, then the journal closes.",
    status: "made",
  },
  {
    id: "exec-1",
    text: "Each stream through an executor has credit: a sender waits for its reader, nothing overflows, and a slow reader holds up nobody else.",
    status: "made",
  },
  {
    id: "exec-2",
    text: "A request that is taken back ends at the far end too: the server's socket is closed.",
    status: "made",
  },
  {
    id: "exec-3",
    text: "A connection that was lost is reported as that, never as a gap in a body or as its end.",
    status: "made",
  },
  {
    id: "exec-4",
    text: "A cut of the connection is not seen by requests and streams, if the two ends find each other again in time: every byte once, in order.",
    status: "made",
  },
  {
    id: "exec-5",
    text: "Bodies have a largest size in both directions, and a request's body is sent as it comes.",
    status: "made",
  },
  {
    id: "exec-6",
    text: "An executor reaches what its rules allow and nothing else; link-local and metadata addresses never; the address that was checked is the one that is connected to; redirects are checked again.",
    status: "made",
  },
  {
    id: "exec-7",
    text: "Requests of one connection run side by side, within a bound, and nobody is served without the token.",
    status: "made",
  },
  {
    id: "exec-8",
    text: "An executor can be dialled, or dial out to the gateway by itself; both do the same.",
    status: "made",
  },
  {
    id: "exec-keep",
    text: "The wire is that of the Codex exec-server: its methods, fields, ids, order and errors hold with a peer that knows nothing else.",
    status: "made",
  },
  {
    id: "engine-door",
    text: "The engine is spoken to as the config says: TLS never falls back to clear text, a node proves that it is one that was named, secrets are read anew at each dial and stand in no address.",
    status: "made",
  },
  {
    id: "engine-away",
    text: "Without its engine a gateway refuses at once what needs it, with the time of the next try, holds nothing without bound, and comes back by itself.",
    status: "made",
  },
  {
    id: "engine-sealed",
    text: "The sealing key that gateways share in an engine is wrapped under a key that only they are given: a config without one is refused, and a new one is everywhere before it is used. Arguments, results, messages and logins lie there sealed.",
    status: "made",
  },
  {
    id: "engine-shared",
    text: "What is done at one gateway on an engine holds at all of them: tokens and their end, sessions, pins, contexts, runs, logins.",
    status: "made",
  },
  {
    id: "budget-slices",
    text: "A budget holds over all gateways on an engine: no window has more calls than it and one slice a gateway, and a call asks nobody.",
    status: "made",
  },
  {
    id: "engine-drain",
    text: "A gateway that is drained hands over what it has in hand first, its calls end, and writes at the others go on.",
    status: "made",
  },
  {
    id: "placement-one",
    text: 'With "placement": "one" a single gateway on an engine runs the server for all: agents at the others have the same process, and it is another\'s within ten seconds of a kill.',
    status: "made",
  },
  {
    id: "engine-logins",
    text: "A login is renewed once for all gateways on an engine, whoever of them needs it, and its refresh token is shown once.",
    status: "made",
  },
  {
    id: "engine-entries",
    text: "Where the entries of one name mean two servers at two gateways on an engine, what is queued for the one is never delivered to the other, and status names the difference.",
    status: "made",
  },
  {
    id: "engine-versions",
    text: "A record of a newer version is left alone by an older gateway: not read, not written over, and shown as held.",
    status: "made",
  },
  {
    id: "engine-same-config",
    text: "A gateway on an engine that goes by another config than the others is shown by their status.",
    status: "made",
  },
  {
    id: "engine-told",
    text: "An engine that is too old is refused, and of any other it is said which promises hold on it.",
    status: "made",
  },
  {
    id: "call-is-live",
    text: "What a server asks, logs and is doing during `toolway call` reaches the person at the terminal, and Ctrl-C reaches the tool. Without a terminal its questions are declined, and it is said.",
    status: "made",
  },
  {
    id: "compare-and-set",
    text: "Of several that write to a key on what they have read of it, one is told that it did; a write whose answer was lost is recognised, or called unknown, never made twice.",
    status: "made",
  },
  {
    id: "one-owner",
    text: "Of a partition's holders at most one acts at a time, by the holder's own clock: one that was frozen past its lease does not act when it wakes.",
    status: "made",
  },
  {
    id: "takeover",
    text: "Partitions are spread evenly over the gateways that live; what one held is another's within ten seconds of a kill and at once after a stop, while the engine has a leader; where it has none, within ten seconds of its having one again.",
    status: "made",
  },
  {
    id: "session-split",
    text: "Of a session over several gateways, each request may go to another of them: answers, cancels, streams and processes of its own are found.",
    status: "made",
  },
  {
    id: "peers-answer",
    text: "A gateway that asks another gets its answer whole, or is told at once that it is not there, or that the outcome is unknown.",
    status: "made",
  },
  {
    id: "executor-elsewhere",
    text: "An executor that dialled in at one gateway on an engine serves the agents of all: answers come whole and no faster than they are read, or it is told that the outcome is unknown.",
    status: "made",
  },
  {
    id: "engine-move",
    text: "What a gateway keeps is moved into an engine and back, verified and resumable: whoever goes on has all of it, nothing is written over unseen, and the state that was left is refused.",
    status: "made",
  },
  {
    id: "engine-outbox",
    text: "Gateways on one engine keep writes together: any of them takes, shows and settles any, and what one had in hand when it died is delivered by another.",
    status: "made",
  },
  {
    id: "mail-anywhere",
    text: "Brokers on one engine keep mailboxes together: who shares at one of them serves who calls at another, live frames and large results included, and what one had in hand when it died is another's.",
    status: "made",
  },
];
