// What the verbs do that read and edit the file of a config, in one piece: it is loaded when one of them runs, and each
// further piece would be a file more that a start of the gateway has to open.

export { listClients } from "../setup/list.js";
export { setUp } from "../setup/setup.js";
export { addToConfig } from "./add.js";
export { entryNames, listServers, removeFromConfig } from "./entries.js";
export { importableNames, importServers } from "./import.js";
export { tellReload } from "./reload-report.js";
