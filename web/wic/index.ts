// A WIC: a browser as a terminal of an IMS. See docs/guide/ims.md.

export { type Account, Agent, type Event, type Media, type OnCall } from "./agent.ts";
export { connect, gathered } from "./page.ts";
export { parse } from "./sip.ts";
