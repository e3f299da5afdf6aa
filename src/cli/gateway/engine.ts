// What verbs ask of the engine that several gateways share. They know it by this file alone.

export { makeEngineKey } from "../../gateway/engine/keys.js";
