// What bodies of OTLP's JSON have in common: who says it, attributes and times. Pure.

/** Who says it: OTLP's resource and scope. */
export interface Origin {
  readonly serviceName: string;
  readonly version: string;
  /** Tells several gateways of one name apart. */
  readonly instanceId: string;
}

export function resourceOf({ serviceName, version, instanceId }: Origin): object {
  return {
    attributes: attributes({
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": instanceId,
    }),
  };
}

export function scopeOf({ version }: Origin): object {
  return { name: "toolway", version };
}

export function attributes(values: Readonly<Record<string, string | number>>): object[] {
  return Object.entries(values).map(([key, value]) => ({
    key,
    // 64-bit integers are strings in OTLP's JSON.
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** A double holds the microseconds of a date, not its nanoseconds. */
export function nanos(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}
