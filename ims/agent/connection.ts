// A connection to the eP-CSCF that is opened again when it is lost (RFC 5626, section 4.5).

/** Time before the first new attempt, in ms. Each further one waits twice as long, up to the second time. */
const [FIRST_MS, LONGEST_MS] = [500, 4_000];
/** Attempts after a loss: with the times above some 45 s, in which a part of the network starts again. */
const ATTEMPTS = 15;

/** A WebSocket as far as it is needed here. */
export interface Socket {
  send(text: string): void;
}

/** What a socket tells. `onClosed` comes once, also if the socket was never open. */
export interface Told {
  onOpen(): void;
  onText(text: string): void;
  onClosed(): void;
}

/** What a connection tells. */
export interface Hears {
  onText(text: string): void;
  /** The first socket is open. */
  onOpen(): void;
  /** The socket is lost; a new one is on its way. */
  onLost(): void;
  /** A new socket is open. */
  onBack(): void;
  /** There is no way to the network: the first socket or all attempts after a loss failed. */
  onFailed(): void;
}

export class Connection {
  private socket: Socket;
  private wasOpen = false;
  private attempts = 0;

  /** `open` makes a socket; `random` gives numbers from 0 to 1. */
  constructor(
    private readonly open: (told: Told) => Socket,
    private readonly hears: Hears,
    private readonly random: () => number,
  ) {
    this.socket = this.next();
  }

  send(text: string): void {
    this.socket.send(text);
  }

  private next(): Socket {
    return this.open({
      onOpen: () => this.onOpen(),
      onText: (text) => this.hears.onText(text),
      onClosed: () => this.onClosed(),
    });
  }

  private onOpen(): void {
    this.attempts = 0;
    if (this.wasOpen) return this.hears.onBack();
    this.wasOpen = true;
    this.hears.onOpen();
  }

  private onClosed(): void {
    if (!this.wasOpen || this.attempts === ATTEMPTS) return this.hears.onFailed();
    if (this.attempts === 0) this.hears.onLost();
    // RFC 5626, section 4.5: between half and all of the time, so that not all terminals come at once.
    const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.attempts);
    this.attempts += 1;
    setTimeout(
      () => {
        this.socket = this.next();
      },
      most * (0.5 + this.random() / 2),
    );
  }
}
