// A WIC: a browser as a terminal of an IMS. See docs/guide/ims.md.

export { Agent } from "./agent.ts";
export { connect, gathered } from "./page.ts";
export { parse } from "./sip.ts";
export type { Account, Event, Media, OnCall } from "./surroundings.ts";
