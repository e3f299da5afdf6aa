#!/usr/bin/env node
// The program `toolway`. What it is stands in process.ts, which is loaded as a script whose code V8 keeps (code/).

const { runProcess } = await import("./process.js");
await runProcess();
