// The run as it goes: curves, sliders, getStats, and what the run says.

import { el, table } from "../dom";
import type { Report } from "../format";
import { formatNumber } from "../model";
import { LIVE, results } from "../playground/results";
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

export function watch(trying: Trying, ended: () => void) {
  let number = -1;
  let statuses: Status[] = [];
  let stats: Stats[] = [];
  let next = { status: 0, stats: 0 };
  let curves = 0;
  let state = "";
  let drawn = 0;
  const title = el("h2", {}, "Run");
  const status = el(
    "p",
    { class: "status", role: "status", "aria-live": "polite" },
    "Nothing ran yet.",
  );
  const now = el("p", { class: "now" });
  const stop = el("button", { type: "button", hidden: true }, "Stop");
  stop.addEventListener("click", () => void trying(() => ask("stop", {})));
  const report = el("p", { hidden: true });
  const network = sliders((line) => void trying(() => ask("change", { line })));
  network.element.hidden = true;
  const peers = el("div");
  const said = el("pre", { class: "said", "aria-label": "Output" });
  said.hidden = true;
  const [simulated, live] = [results(), results(LIVE)];
  for (const { element } of [simulated, live]) element.hidden = true;
  const element = el(
    "section",
    { "aria-label": "Run" },
    title,
    status,
    stop,
    report,
    now,
    network.element,
    simulated.element,
    live.element,
    peers,
    said,
  );

  const take = async (news: News) => {
    if (news.number !== number) {
      [number, statuses, stats, curves, state, drawn] = [news.number, [], [], 0, "", 0];
    }
    if (number === 0) return;
    statuses.push(...news.statuses);
    stats.push(...news.stats);
    next = { status: news.next_status, stats: news.next_stats };
    const isLive = news.kind !== "run";
    const runs = news.state === "running";
    title.textContent = `${{ run: "Simulation of", call: "Call in", link: "Link of" }[news.kind]} ${news.scenario}`;
    status.textContent = inWords(news, statuses.length > 0);
    stop.hidden = !runs;
    network.element.hidden = !isLive || !runs;
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
    const command = `weir ${news.kind} ${news.scenario}`;
    if (!isLive && news.curves_version > curves) {
      curves = news.curves_version;
      const report = await ask<Report | null>("curves");
      if (report !== null) simulated.show(report, `${command} --controller ${news.what}`);
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
  return { element, follow };
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

function peerTable(rows: Stats[]): HTMLElement {
  const number = (head: string, digits: number, of: (row: Stats) => number | null | undefined) => ({
    head,
    kind: "number" as const,
    cell: (row: Stats) => formatNumber(of(row) ?? null, digits),
  });
  const kbps = (bps: number | null | undefined) => (bps == null ? null : bps / 1000);
  const size = (size: [number, number] | null | undefined) =>
    size == null ? "" : size.join(" × ");
  return table(
    "getStats of each peer",
    [
      {
        head: "peer",
        cell: (row: Stats) => (rows.length > 2 ? `${row.peer} of call ${row.call}` : row.peer),
      },
      number("estimate, kbit/s", 0, (row) => kbps(row.estimated_bps)),
      number("target, kbit/s", 0, (row) => kbps(row.target_bps)),
      number("sent, kbit/s", 0, (row) => kbps(row.send_bps)),
      { head: "sent picture", cell: (row: Stats) => size(row.sent_frame_size) },
      number("sent, fps", 0, (row) => row.sent_frame_rate),
      { head: "limited by", cell: (row: Stats) => row.limitation ?? "" },
      number("RTT, ms", 0, (row) => row.rtt_ms),
      number("received, kbit/s", 0, (row) => kbps(row.receive_bps)),
      number("received, fps", 0, (row) => row.frame_rate),
      number("loss, %", 1, (row) => (row.loss_ratio == null ? null : row.loss_ratio * 100)),
    ],
    rows,
  );
}
