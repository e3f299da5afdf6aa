// Which server a resource URI or a URI template belongs to, from the lists as they are. Names are in names.ts.

import type { Item } from "./items.js";
import { compileTemplate, matchesTemplate, type StepBudget, type UriTemplate } from "./uri-template.js";

export interface RouteSource {
  readonly server: string;
  readonly resources: readonly Item[];
  readonly templates: readonly Item[];
}

/**
 * Steps that one URI may cost in the templates of one server: about a millisecond. Hundreds of real templates stay
 * below; a hostile server only spoils its own matches, and twenty of them keep an answer below 50 ms.
 */
const STEPS_PER_SERVER = 100_000;

/** Text of one server's templates that is made ready for matching; real servers have a few lines. */
const TEMPLATE_TEXT_PER_SERVER = 128 * 1024;

export class Routes {
  readonly #resources = new Map<string, string>();
  readonly #templates = new Map<string, string>();
  readonly #compiled: { server: string; templates: UriTemplate[] }[] = [];

  /** In the order of the config: the first server that claims something has it. */
  constructor(sources: readonly RouteSource[]) {
    for (const { server, resources, templates } of sources) {
      for (const { own } of resources) if (!this.#resources.has(own)) this.#resources.set(own, server);
      for (const { own } of templates) if (!this.#templates.has(own)) this.#templates.set(own, server);
      const compiled: UriTemplate[] = [];
      let text = 0;
      for (const { own } of templates) {
        text += own.length;
        if (text > TEMPLATE_TEXT_PER_SERVER) break;
        const template = compileTemplate(own);
        if (template !== undefined) compiled.push(template);
      }
      if (compiled.length > 0) this.#compiled.push({ server, templates: compiled });
    }
  }

  ofTemplate(uriTemplate: string): string | undefined {
    return this.#templates.get(uriTemplate);
  }

  ofUri(uri: string): string | undefined {
    const listed = this.#resources.get(uri);
    if (listed !== undefined) return listed;
    for (const { server, templates } of this.#compiled) {
      const budget: StepBudget = { left: STEPS_PER_SERVER };
      for (const template of templates) {
        if (matchesTemplate(template, uri, budget)) return server;
        if (budget.left < 0) break;
      }
    }
    return undefined;
  }
}
