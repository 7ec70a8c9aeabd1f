// How a participant joins mediasoup's room: the page has the elements of LiveKit's.

export { default } from "../../examples/apps/livekit/join.mjs";
