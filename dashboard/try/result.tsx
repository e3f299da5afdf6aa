// What a tool gave: text, pictures, sound, structured, links. All of it is somebody else's, and none of it is run.

import { useEffect, useState } from "preact/hooks";
import { isObject } from "../../src/runtime/words/json-object.js";
import { isSafeAddress } from "../safe-address.js";
import { saveFile } from "../save.js";
import { Foreign } from "../words.js";

/** What is longer is given as a file: a page that shows it stands still. */
const MAX_SHOWN = 256 * 1024;

export function Result({ value, name }: { value: unknown; name: string }) {
  const text = JSON.stringify(value, undefined, 2) ?? "";
  const content = isObject(value) && Array.isArray(value["content"]) ? (value["content"] as readonly unknown[]) : [];
  const isFailed = isObject(value) && value["isError"] === true;
  const structured = isObject(value) ? value["structuredContent"] : undefined;
  return (
    <section aria-labelledby="result">
      <h3 id="result">{isFailed ? "It says that it failed" : "Result"}</h3>
      {text.length > MAX_SHOWN ? (
        <p>
          {Math.round(text.length / 1024).toLocaleString()} KiB are too much to show.{" "}
          <Download text={text} name={`${name}.json`} />
        </p>
      ) : (
        <>
          {content.map((block, index) => (
            <Block key={index} block={block} />
          ))}
          {structured === undefined ? null : (
            <>
              <h3>Structured</h3>
              <pre>
                <Foreign text={JSON.stringify(structured, undefined, 2)} lines />
              </pre>
            </>
          )}
          <details>
            <summary>All of it, as JSON</summary>
            <pre>
              <Foreign text={text} lines />
            </pre>
            <Download text={text} name={`${name}.json`} />
          </details>
        </>
      )}
    </section>
  );
}

function Block({ block }: { block: unknown }) {
  if (!isObject(block)) return null;
  const { type, text, data, mimeType, uri, name, resource } = block;
  if (type === "text") {
    return (
      <pre>
        <Foreign text={String(text)} lines />
      </pre>
    );
  }
  if (type === "image" && typeof data === "string") return <Media data={data} type={String(mimeType)} kind="image" />;
  if (type === "audio" && typeof data === "string") return <Media data={data} type={String(mimeType)} kind="audio" />;
  if (type === "resource_link") return <Address uri={String(uri)} name={String(name ?? uri)} />;
  if (type === "resource" && isObject(resource)) {
    return (
      <figure>
        <figcaption>
          <Foreign text={String(resource["uri"])} />
        </figcaption>
        <pre>
          <Foreign text={String(resource["text"] ?? "(not a text)")} lines />
        </pre>
      </figure>
    );
  }
  return (
    <pre>
      <Foreign text={JSON.stringify(block, undefined, 2)} lines />
    </pre>
  );
}

/** Opened only where it leads to a site or to this machine, with its host in sight. */
function Address({ uri, name }: { uri: string; name: string }) {
  if (!isSafeAddress(uri)) {
    return (
      <p>
        <Foreign text={`${name}: ${uri}`} />
      </p>
    );
  }
  return (
    <p>
      <a href={uri} target="_blank" rel="noopener noreferrer">
        <Foreign text={name} />
      </a>{" "}
      at <Foreign text={new URL(uri).host} />
    </p>
  );
}

/** Kinds that a browser shows without running anything: an SVG is none of them. */
const SHOWN_TYPES = /^(image\/(png|jpeg|gif|webp|avif)|audio\/[\w.+-]+)$/;

function Media({ data, type, kind }: { data: string; type: string; kind: "image" | "audio" }) {
  const [url, setUrl] = useState<string>();
  useEffect(() => {
    let made: string | undefined;
    try {
      const bytes = Uint8Array.from(atob(data), (one) => one.charCodeAt(0));
      made = SHOWN_TYPES.test(type) ? URL.createObjectURL(new Blob([bytes], { type })) : undefined;
    } catch {
      made = undefined;
    }
    setUrl(made);
    return () => {
      if (made !== undefined) URL.revokeObjectURL(made);
    };
  }, [data, type]);
  if (url === undefined) {
    return (
      <p class="empty">
        A picture or sound that is not shown: <Foreign text={type} />.
      </p>
    );
  }
  // biome-ignore lint/a11y/useMediaCaption: nobody wrote one for what a tool gave
  return kind === "image" ? <img class="result" src={url} alt="What the tool gave" /> : <audio controls src={url} />;
}

function Download({ text, name }: { text: string; name: string }) {
  return (
    <button type="button" onClick={() => saveFile(text, name, "application/json")}>
      Save it as a file
    </button>
  );
}
