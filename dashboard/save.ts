// Saves a text that the page has as a file, without an address of anybody's.

/** So long the browser may take to read it. */
const READ_MS = 10_000;

export function saveFile(text: string, name: string, type: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const anchor = document.createElement("a");
  anchor.href = url;
  anchor.download = name;
  anchor.target = "_self";
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), READ_MS);
}
