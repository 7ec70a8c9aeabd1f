// The state of one's own registration, as the registrar tells it (RFC 3680; TS 24.229, section 5.1.1.3).

import type { Line } from "./call.ts";
import * as sip from "./sip.ts";
import type { Binding } from "./surroundings.ts";

/** Longest subscription that is asked for, in s (TS 24.229, section 5.1.1.3). */
const EXPIRES = 600_000;

/** A subscription to the state of one's own registration. */
export function subscription(line: Line, sequence: number): sip.Request {
  const { account } = line;
  const routes = line.serviceRoutes.map((route): sip.Header => ["Route", route]);
  return line.request("SUBSCRIBE", account.public, [
    ...routes,
    ["From", `<${account.public}>;tag=${line.unique("t")}`],
    ["To", `<${account.public}>`],
    ["Call-ID", line.unique("watch")],
    ["CSeq", `${sequence} SUBSCRIBE`],
    ["Contact", line.contact()],
    ["Event", "reg"],
    ["Accept", "application/reginfo+xml"],
    ["Expires", String(EXPIRES)],
  ]);
}

/** The registrations of a document (RFC 3680, section 5). What is none is left out. */
export function bindings(xml: string): Binding[] {
  const found: Binding[] = [];
  for (const [, tag, attributes] of xml.matchAll(/<(registration|contact)\s([^>]*)>/g)) {
    const value = (name: string) => attributeOf(attributes ?? "", name);
    if (tag === "registration") {
      found.push({ identity: value("aor"), state: value("state"), event: "" });
    } else {
      const last = found.at(-1);
      if (last) last.event = value("event");
    }
  }
  return found;
}

function attributeOf(attributes: string, name: string): string {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)')`).exec(attributes);
  return found?.[1] ?? found?.[2] ?? "";
}
