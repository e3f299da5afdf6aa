import { describe, expect, it } from "vitest";
import { childEnvironment } from "./child-env.js";

describe("the environment of a child", () => {
  it("is an allowlist plus the entry's own, which wins", () => {
    const ours = {
      PATH: "/bin",
      HOME: "/home/a",
      LC_ALL: "C.UTF-8",
      XDG_CONFIG_HOME: "/home/a/.config",
      HTTPS_PROXY: "http://proxy:3128",
      no_proxy: "localhost",
      NODE_EXTRA_CA_CERTS: "/etc/ca.pem",
      AWS_SECRET_ACCESS_KEY: "canary",
      GITHUB_TOKEN: "canary",
      NODE_OPTIONS: "--inspect",
      SSH_AUTH_SOCK: "/tmp/agent",
      TOOLWAY_TOKEN: "canary",
      TOOLWAY_CHILD_OF: "outer",
      SHELL: "() { :; }; echo pwned",
    };
    expect(childEnvironment(ours, { HOME: "/srv", API_KEY: "given" }, "linux")).toEqual({
      PATH: "/bin",
      HOME: "/srv",
      LC_ALL: "C.UTF-8",
      XDG_CONFIG_HOME: "/home/a/.config",
      HTTPS_PROXY: "http://proxy:3128",
      no_proxy: "localhost",
      NODE_EXTRA_CA_CERTS: "/etc/ca.pem",
      API_KEY: "given",
    });
  });

  it("never has a token or a key of Toolway's, not even from the entry [run-secret]", () => {
    const names = [
      "TOOLWAY_TOKEN",
      "TOOLWAY_SESSION_TOKEN",
      "TOOLWAY_GEMINI_TOKEN",
      "TOOLWAY_CLAUDE-DESKTOP_TOKEN",
      "TOOLWAY_ENGINE_KEY",
      "Toolway_Engine_Key",
    ];
    const entry = { ...Object.fromEntries(names.map((name) => [name, "canary"])), A: "1", MY_TOOLWAY_TOKEN: "mine" };
    expect(childEnvironment({ ...entry }, entry, "linux")).toEqual({ A: "1", MY_TOOLWAY_TOKEN: "mine" });
  });

  it("has what Windows programs need, without regard to case", () => {
    const ours = { Path: "C:\\bin", SystemRoot: "C:\\Windows", Secret: "canary" };
    expect(childEnvironment(ours, {}, "win32")).toEqual({ Path: "C:\\bin", SystemRoot: "C:\\Windows" });
  });
});
