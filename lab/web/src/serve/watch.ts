// The run as it goes: curves, sliders, getStats, and what the run says.

import { el, table } from "../dom";
import type { Report } from "../format";
import { formatNumber } from "../model";
import { LIVE, SIMULATED_LOW, results } from "../playground/results";
import { liveReport, newest } from "./live";
import { ask, reportOf, type News, type Stats, type Status } from "./server";
import { sliders } from "./sliders";

type Trying = (work: () => Promise<unknown>) => Promise<void>;

/** Time between two questions to the server, ms. */
const PAUSE_MS = 250;
/** The same if the server does not answer, or if nothing runs. */
const SLOW_MS = 1000;
/** The plot is drawn at most this often, ms: drawing is what costs. */
const DRAW_MS = 500;

/** `preview` is shown as long as nothing ran. */
export function watch(trying: Trying, preview: HTMLElement, ended: () => void) {
  let number = -1;
  let statuses: Status[] = [];
  let stats: Stats[] = [];
  let next = { status: 0, stats: 0 };
  let curves = 0;
  let state = "";
  let drawn = 0;
  /** What repeats the run, and the run and the changes that it is of. */
  let command = "";
  let repeated = "";
  const title = el("h2", {}, "Run");
  const status = el(
    "p",
    { class: "status", role: "status", "aria-live": "polite" },
    "Nothing ran yet. Simulate, call or link this network: the curves come here while it runs.",
  );
  const now = el("p", { class: "now" });
  const stop = el("button", { type: "button", hidden: true }, "Stop");
  stop.addEventListener("click", () => void trying(() => ask("stop", {})));
  const report = el("p", { hidden: true });
  const network = sliders((line) => void trying(() => ask("change", { line })));
  const peers = el("div");
  const said = el("pre", { class: "said", "aria-label": "Output" });
  said.hidden = true;
  const [simulated, live] = [results(SIMULATED_LOW), results(LIVE)];
  for (const { element } of [simulated, live]) element.hidden = true;
  const element = el(
    "section",
    { "aria-label": "Run", class: "stage" },
    el("div", { class: "head" }, title, status, stop, report),
    now,
    preview,
    simulated.element,
    live.element,
    said,
  );

  const take = async (news: News) => {
    if (news.number !== number) {
      [number, statuses, stats, curves, state, drawn] = [news.number, [], [], 0, "", 0];
    }
    if (number === 0) return;
    preview.hidden = true;
    statuses.push(...news.statuses);
    stats.push(...news.stats);
    next = { status: news.next_status, stats: news.next_stats };
    const isLive = news.kind !== "run";
    const runs = news.state === "running";
    title.textContent = `${{ run: "Simulation of", call: "Call in", link: "Link of" }[news.kind]} ${news.scenario}`;
    status.textContent = inWords(news, statuses.length > 0);
    stop.hidden = !runs;
    network.allow(isLive && runs);
    // The sliders take the place of what cannot be started now, with getStats below them.
    document.body.classList.toggle("busy", isLive && runs);
    network.show(news.changes);
    now.textContent = isLive ? atPresent(statuses[statuses.length - 1]) : "";
    said.textContent = news.said.join("\n");
    said.hidden = news.said.length === 0;
    peers.replaceChildren(...(stats.length > 0 ? [peerTable(newest(stats))] : []));
    await draw(news, isLive);
    if (state !== news.state && !runs) {
      showReport(news);
      ended();
    }
    if (runs) report.hidden = true;
    state = news.state;
  };
  const draw = async (news: News, isLive: boolean) => {
    simulated.element.hidden = isLive || news.curves_version === 0;
    live.element.hidden = !isLive || statuses.length === 0;
    const of = `${news.number} ${JSON.stringify(news.changes)}`;
    if (of !== repeated) {
      command = (await ask<{ text: string }>("command")).text;
      repeated = of;
    }
    if (!isLive && news.curves_version > curves) {
      curves = news.curves_version;
      const report = await ask<Report | null>("curves");
      if (report !== null) simulated.show(report, command);
    }
    const isDue = performance.now() - drawn >= DRAW_MS || news.state !== "running";
    if (isLive && statuses.length > 0 && isDue && state !== "done" && state !== "failed") {
      drawn = performance.now();
      live.show(liveReport(news.scenario, news.kind as "call" | "link", statuses, stats), command);
    }
  };
  const showReport = ({ records }: News) => {
    report.hidden = records.length === 0;
    const link = el(
      "a",
      { href: reportOf(records), target: "_blank", rel: "noopener" },
      "Open the report",
    );
    report.replaceChildren(link);
  };
  const follow = async () => {
    for (;;) {
      let pause = PAUSE_MS;
      try {
        const known = Math.max(number, 0);
        const news = await ask<News>(`news/${known}/${next.status}/${next.stats}`);
        if (news.number !== known) next = { status: 0, stats: 0 };
        await take(news);
        if (news.number === 0 || news.state !== "running") pause = SLOW_MS / 2;
      } catch (error) {
        status.textContent = `No answer: ${error instanceof Error ? error.message : error}`;
        pause = SLOW_MS;
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  };
  return { element, network: network.element, peers, follow };
}

function inWords(news: News, hasStatus: boolean): string {
  const [done, all] = news.finished;
  const what = news.what === "" ? "" : `${news.what}: `;
  if (news.state === "failed") return `${what}failed: ${news.failure}`;
  if (news.state === "done") return `${what}ended; the record is written`;
  if (news.kind === "run") return `${what}${done} of ${all} simulated`;
  return `${what}${hasStatus ? "runs" : "is being set up"}`;
}

/** The state of the network, in one line. */
function atPresent(status: Status | undefined): string {
  const [hop] = status?.hops ?? [];
  if (status === undefined || hop === undefined) return "";
  const way = (
    name: string,
    { capacity_mbps, rate_mbps, loss_ratio, queuing_delay_ms }: typeof hop.up,
  ) => {
    const of = capacity_mbps === null ? "" : ` of ${capacity_mbps.toFixed(2)}`;
    return `${name} ${rate_mbps.toFixed(2)}${of} Mbit/s, queue ${queuing_delay_ms.toFixed(0)} ms, ${(loss_ratio * 100).toFixed(1)} % lost`;
  };
  return `${status.time_s.toFixed(0)} s · ${way("up", hop.up)} · ${way("down", hop.down)} · round trip ${status.round_trip_ms.toFixed(0)} ms`;
}

/** A row for each value and a column for each peer, so that it stands beside the sliders. */
function peerTable(peers: Stats[]): HTMLElement {
  const kbps = (bps: number | null | undefined) => (bps == null ? null : bps / 1000);
  const percent = (ratio: number | null | undefined) => (ratio == null ? null : ratio * 100);
  const number =
    (digits: number, of: (peer: Stats) => number | null | undefined) => (peer: Stats) =>
      formatNumber(of(peer) ?? null, digits);
  const rows: [string, (peer: Stats) => string][] = [
    ["estimate (kbit/s)", number(0, (peer) => kbps(peer.estimated_bps))],
    ["target (kbit/s)", number(0, (peer) => kbps(peer.target_bps))],
    ["sent (kbit/s)", number(0, (peer) => kbps(peer.send_bps))],
    ["sent picture", (peer) => peer.sent_frame_size?.join(" × ") ?? "–"],
    ["sent (frames/s)", number(0, (peer) => peer.sent_frame_rate)],
    ["limited by", (peer) => peer.limitation ?? "–"],
    ["round trip (ms)", number(0, (peer) => peer.rtt_ms)],
    ["received (kbit/s)", number(0, (peer) => kbps(peer.receive_bps))],
    ["received (frames/s)", number(0, (peer) => peer.frame_rate)],
    ["loss (%)", number(1, (peer) => percent(peer.loss_ratio))],
    ["freezes", number(0, (peer) => peer.freezes)],
  ];
  const calls = new Set(peers.map((peer) => peer.call)).size;
  return table(
    "getStats of each peer",
    [
      { head: "getStats", cell: ([name]) => name },
      ...peers.map((peer) => ({
        head: calls > 1 ? `${peer.peer} of call ${peer.call}` : peer.peer,
        kind: "number" as const,
        cell: ([, of]: (typeof rows)[number]) => of(peer),
      })),
    ],
    rows,
  );
}
