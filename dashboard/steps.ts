// Numbers by steps of time, joined to fewer.

/** Steps joined by so many, so that a line is no noise: of times the longest, of counts the sum. */
export function joinedSteps(values: readonly number[], by: number, how: "sum" | "most"): number[] {
  const joined: number[] = [];
  for (let i = 0; i < values.length; i += by) {
    const some = values.slice(i, i + by);
    joined.push(how === "sum" ? some.reduce((all, one) => all + one, 0) : Math.max(...some));
  }
  return joined;
}
