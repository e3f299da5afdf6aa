// A text that narrows what a view shows, kept in its address.

import { useState } from "preact/hooks";
import { query, setQuery } from "./router.js";

/** Takes effect by Enter. What is being typed stays, whatever else of the page changes meanwhile. */
export function FilterText(props: { label: string; name: string; size?: number; placeholder?: string }) {
  const { label, name, size = 12, placeholder } = props;
  const [typed, setTyped] = useState<string>();
  return (
    <label>
      {label}{" "}
      <input
        type="search"
        size={size}
        placeholder={placeholder}
        value={typed ?? query.value.get(name) ?? ""}
        onInput={({ currentTarget }) => setTyped(currentTarget.value)}
        onChange={({ currentTarget }) => {
          setQuery(name, currentTarget.value);
          setTyped(undefined);
        }}
      />
    </label>
  );
}
