// What is asked for in the query of an address: what is not there, or is no number where one belongs, was not asked for.

export function queryText(query: URLSearchParams, key: string): string | undefined {
  return query.get(key) ?? undefined;
}

/** A number from 0. */
export function queryNumber(query: URLSearchParams, key: string): number | undefined {
  const value = query.has(key) ? Number(query.get(key)) : Number.NaN;
  return Number.isFinite(value) && value >= 0 ? value : undefined;
}
