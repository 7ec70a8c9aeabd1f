// Messages of a web server as lines of JSON, which `weir ims record` reads.

import { appendFileSync } from "node:fs";

/** Names after which a value is a secret. */
const SECRETS = /((?:password|token|access_token|client_secret)=)[^&\s]+/g;

/** A function that notes a message between two parts in `FOLDER/PART.jsonl`. Secrets are left out. */
export function noter(folder, part) {
  return (from, to, protocol, name, text) => {
    const time_ns = `${Math.round((performance.timeOrigin + performance.now()) * 1000)}000`;
    const line = { time_ns, from, to, protocol, name, text: text.replace(SECRETS, "$1(left out)") };
    appendFileSync(`${folder}/${part}.jsonl`, `${JSON.stringify(line)}\n`);
  };
}
