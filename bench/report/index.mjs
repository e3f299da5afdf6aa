// What the bench does with its results.

export { writeChart } from "./chart.mjs";
export { checkAgainst } from "./check.mjs";
export { record } from "./record.mjs";
export { printTable } from "./table.mjs";
