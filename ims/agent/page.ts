// The parts of a WIC that only a browser has: the WebSocket and the RTCPeerConnection.

import { Agent } from "./agent.ts";
import { Connection, type Told } from "./connection.ts";
import type { Account, Event, Media, OnCall } from "./surroundings.ts";

export interface Options {
  /** Address of the eP-CSCF, such as `wss://10.46.0.2:8443`. */
  url: string;
  account: Account;
  media: Media;
  onCall: OnCall;
  on(event: Event): void;
  /** Takes each message for a record: its text, and whether it was sent. */
  onMessage?(text: string, isSent: boolean): void;
}

/** Opens the WebSocket (RFC 7118, section 4), again when it is lost, and returns an agent on it. */
export function connect(options: Options): Promise<Agent> {
  const random = () => crypto.randomUUID().slice(0, 8);
  return new Promise((resolve, reject) => {
    let isOpen = false;
    const connection = new Connection(
      (told) => open(options.url, told),
      {
        onText(text) {
          options.onMessage?.(text, false);
          void agent.receive(text);
        },
        onOpen() {
          isOpen = true;
          resolve(agent);
        },
        onLost: () => agent.disconnected(),
        onBack: () => agent.reconnected(),
        onFailed() {
          if (isOpen) options.on({ type: "failed", code: 503 });
          else reject(new Error("the eP-CSCF refuses the WebSocket"));
        },
      },
      Math.random,
    );
    const agent = new Agent(options.account, {
      send(text) {
        options.onMessage?.(text, true);
        connection.send(text);
      },
      on: options.on,
      media: options.media,
      onCall: options.onCall,
      random,
    });
  });
}

function open(url: string, told: Told): WebSocket {
  const socket = new WebSocket(url, "sip");
  socket.binaryType = "arraybuffer";
  socket.addEventListener("message", ({ data }: MessageEvent<string | ArrayBuffer>) => {
    const text = typeof data === "string" ? data : new TextDecoder().decode(data);
    // An empty line keeps the connection alive (RFC 7118, section 6).
    if (text.trim() !== "") told.onText(text);
  });
  socket.addEventListener("open", told.onOpen);
  // A socket that fails is closed too.
  socket.addEventListener("close", told.onClosed);
  return socket;
}

/** The description of a connection when all its candidates are there. */
export function gathered(connection: RTCPeerConnection): Promise<string> {
  const sdp = () => connection.localDescription?.sdp ?? "";
  if (connection.iceGatheringState === "complete") return Promise.resolve(sdp());
  return new Promise((resolve) => {
    connection.addEventListener("icegatheringstatechange", () => {
      if (connection.iceGatheringState === "complete") resolve(sdp());
    });
  });
}
