// Words of a command that the page offers to be copied, as lab/lab/src/shell.rs writes them. A link to the page may hold
// any name.

const PLAIN = /^(?!=)[A-Za-z0-9\-_./:=@%+,]+$/;
/** What controls a terminal, ends a line, or shows what follows in another order. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about.
const WRITTEN = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/;

/** A word in shell syntax, in one line. */
export function quoted(word: string): string {
  if (PLAIN.test(word)) return word;
  if (!WRITTEN.test(word)) return `'${word.replaceAll("'", "'\\''")}'`;
  const escaped = [...word].map((c) => {
    if (c === "\\" || c === "'") return `\\${c}`;
    return WRITTEN.test(c) ? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}` : c;
  });
  return `$'${escaped.join("")}'`;
}

/** A name, which no program takes for an option. */
export function named(name: string): string {
  return quoted(name.startsWith("-") && name !== "-" ? `./${name}` : name);
}

/** An option with a value. */
export function option(name: string, value: string): string {
  return value.startsWith("-") ? quoted(`${name}=${value}`) : `${name} ${quoted(value)}`;
}
