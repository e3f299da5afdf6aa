// The fields of a form over the arguments of a call: each shows a place in them and changes that place.

import { useState } from "preact/hooks";
import { visible } from "../../src/runtime/visible.js";
import { isObject } from "../../src/runtime/words/json-object.js";
import { Foreign } from "../words.js";
import { fieldOf, MAX_DEPTH, optionOf, type Schema, type SchemaField, shown, skeletonOf } from "./schema-form.js";

interface FieldProps {
  readonly root: Schema;
  readonly schema: Schema;
  readonly value: unknown;
  readonly name: string;
  /** The call is none without it. */
  readonly isNeeded?: boolean;
  readonly depth: number;
  readonly onChange: (value: unknown) => void;
}

/** What has no name of its own are the arguments themselves, or what was chosen of several kinds. */
function labelOf({ name, isNeeded = false, depth }: FieldProps): string {
  const own = name === "" ? (depth === 0 ? "Arguments" : "Value") : name;
  return isNeeded ? `${own} *` : own;
}

export function FormField(props: FieldProps) {
  const { root, schema, depth } = props;
  const field = fieldOf(root, schema, depth);
  switch (field.kind) {
    case "object":
      return <ObjectField {...props} members={field.members} help={field.help} />;
    case "list":
      return <ListField {...props} item={field.item} help={field.help} />;
    case "either":
      return <EitherField {...props} options={field.options} help={field.help} />;
    default:
      return (
        // biome-ignore lint/a11y/noLabelWithoutControl: the input is a component of its own
        <label class="field">
          <span>
            <Foreign text={labelOf(props)} />
          </span>
          <Input field={field} {...props} />
          <Help text={field.help} />
        </label>
      );
  }
}

function Help({ text }: { text: string }) {
  return text === "" ? null : (
    <small>
      <Foreign text={text} />
    </small>
  );
}

function Input({ field, value, onChange }: FieldProps & { field: SchemaField }) {
  const id = `examples-${useState(() => Math.random().toString(36).slice(2))[0]}`;
  switch (field.kind) {
    case "fixed":
      return (
        <code>
          <Foreign text={shown(field.value)} />
        </code>
      );
    case "boolean":
      return (
        <input
          type="checkbox"
          checked={value === true}
          onChange={({ currentTarget }) => onChange(currentTarget.checked)}
        />
      );
    case "choice":
      return (
        <select
          value={Math.max(
            0,
            field.values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value)),
          )}
          onChange={({ currentTarget }) => onChange(field.values[Number(currentTarget.value)])}
        >
          {field.values.map((one, index) => (
            <option key={shown(one)} value={index}>
              {visible(shown(one))}
            </option>
          ))}
        </select>
      );
    case "number":
      return (
        <>
          <input
            type="number"
            step={field.isWhole ? 1 : "any"}
            value={typeof value === "number" ? value : ""}
            {...(field.examples.length === 0 ? {} : { list: id })}
            onInput={({ currentTarget: { value: text } }) => onChange(text === "" ? undefined : Number(text))}
          />
          <Examples id={id} values={field.examples} />
        </>
      );
    case "text":
      return field.isLong ? (
        <textarea
          rows={4}
          value={typeof value === "string" ? value : ""}
          onInput={({ currentTarget }) => onChange(currentTarget.value)}
        />
      ) : (
        <>
          <input
            type="text"
            value={typeof value === "string" ? value : ""}
            {...(field.examples.length === 0 ? {} : { list: id })}
            onInput={({ currentTarget }) => onChange(currentTarget.value)}
          />
          <Examples id={id} values={field.examples} />
        </>
      );
    default:
      return <JsonInput value={value} rows={3} onChange={onChange} />;
  }
}

function Examples({ id, values }: { id: string; values: readonly string[] }) {
  return (
    <datalist id={id}>
      {values.map((one) => (
        <option key={one} value={one} label={visible(one)} />
      ))}
    </datalist>
  );
}

/** The text is kept while it is no JSON, and says so; what is JSON is taken at once. */
export function JsonInput(props: { value: unknown; rows: number; label?: string; onChange: (value: unknown) => void }) {
  const { value, rows, label, onChange } = props;
  const [draft, setDraft] = useState<string>();
  const text = draft ?? JSON.stringify(value, undefined, 2) ?? "";
  const type = (next: string) => {
    try {
      onChange(JSON.parse(next));
      setDraft(undefined);
    } catch {
      setDraft(next);
    }
  };
  return (
    <>
      <textarea
        class="json"
        rows={rows}
        value={text}
        spellcheck={false}
        aria-label={label}
        aria-invalid={draft !== undefined}
        onInput={({ currentTarget }) => type(currentTarget.value)}
      />
      {draft === undefined ? null : <small class="trouble">This is no JSON yet.</small>}
    </>
  );
}

function ObjectField(
  props: FieldProps & { members: Extract<SchemaField, { kind: "object" }>["members"]; help: string },
) {
  const { root, value, name, depth, onChange, members, help } = props;
  const now = isObject(value) ? value : {};
  const put = (key: string, next: unknown) => {
    const { [key]: _before, ...rest } = now;
    onChange(next === undefined ? rest : { ...now, [key]: next });
  };
  return (
    <fieldset>
      {name === "" ? null : (
        <legend>
          <Foreign text={labelOf(props)} />
        </legend>
      )}
      <Help text={help} />
      {members.length === 0 ? <p class="empty">It takes no arguments.</p> : null}
      {members.map(({ name: key, required, schema }) =>
        required || Object.hasOwn(now, key) ? (
          <div key={key} class="member">
            <FormField
              root={root}
              schema={schema}
              value={now[key]}
              name={key}
              isNeeded={required}
              depth={depth + 1}
              onChange={(next) => put(key, next)}
            />
            {required ? null : (
              <button type="button" class="quiet" onClick={() => put(key, undefined)}>
                leave <Foreign text={key} /> out
              </button>
            )}
          </div>
        ) : (
          <button
            key={key}
            type="button"
            class="add"
            onClick={() => put(key, skeletonOf(root, schema, depth + 1) ?? null)}
          >
            + <Foreign text={key} />
          </button>
        ),
      )}
    </fieldset>
  );
}

function ListField(props: FieldProps & { item: Schema; help: string }) {
  const { root, value, name, depth, onChange, item, help } = props;
  const now = Array.isArray(value) ? (value as readonly unknown[]) : [];
  return (
    <fieldset>
      <legend>
        <Foreign text={labelOf(props)} />
      </legend>
      <Help text={help} />
      {now.map((one, index) => (
        <div key={index} class="member">
          <FormField
            root={root}
            schema={item}
            value={one}
            name={`${name} ${index + 1}`}
            depth={depth + 1}
            onChange={(next) => onChange(now.with(index, next ?? null))}
          />
          <button type="button" class="quiet" onClick={() => onChange(now.toSpliced(index, 1))}>
            remove {index + 1}
          </button>
        </div>
      ))}
      <button type="button" class="add" onClick={() => onChange([...now, skeletonOf(root, item, depth + 1)])}>
        + one more
      </button>
    </fieldset>
  );
}

function EitherField(
  props: FieldProps & { options: Extract<SchemaField, { kind: "either" }>["options"]; help: string },
) {
  const { root, value, depth, onChange, options, help } = props;
  // What was chosen here holds for what was filled in here since. What comes from elsewhere, as from the JSON beside the form,
  // says itself which option it is of.
  const [mine, setMine] = useState<{ readonly option: number; readonly value: unknown }>();
  const isMine = mine !== undefined && Object.is(mine.value, value);
  const at = isMine ? mine.option : optionOf(root, options, value, mine?.option);
  const put = (next: unknown, option: number) => {
    setMine({ option, value: next });
    onChange(next);
  };
  const option = options[at] ?? options[0];
  if (option === undefined || depth >= MAX_DEPTH) return <JsonInput value={value} rows={3} onChange={onChange} />;
  return (
    <fieldset>
      <legend>
        <Foreign text={labelOf(props)} />
      </legend>
      <Help text={help} />
      <label class="field">
        <span>One of</span>
        <select
          value={at}
          onChange={({ currentTarget }) => {
            const next = Number(currentTarget.value);
            put(skeletonOf(root, options[next]?.schema, depth + 1), next);
          }}
        >
          {options.map((one, index) => (
            <option key={`${index}-${one.name}`} value={index}>
              {visible(one.name)}
            </option>
          ))}
        </select>
      </label>
      <FormField
        key={at}
        root={root}
        schema={option.schema}
        value={value}
        name=""
        depth={depth + 1}
        onChange={(next) => put(next, at)}
      />
    </fieldset>
  );
}
