// Drives the page of the WWSF in Chromium, as a user would, and prints what came of it as JSON.
//
//   ip netns exec weir-ims-alice node drive.mjs --name alice --password alice-secret --call sip:bob@ims.test
//   ip netns exec weir-ims-alice node drive.mjs --visit --wait-for-call
//   ip netns exec weir-ims-dave node drive.mjs --video https://10.46.0.12:8446/video/SECRET

import { appendFileSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { chromium } from "playwright-core";

const { values } = parseArgs({
  options: {
    folder: { type: "string", default: "/run/weir-ims" },
    name: { type: "string" },
    password: { type: "string" },
    visit: { type: "boolean", default: false },
    call: { type: "string" },
    "wait-for-call": { type: "boolean", default: false },
    hold: { type: "boolean", default: false },
    "until-ended": { type: "boolean", default: false },
    seconds: { type: "string", default: "3" },
    photograph: { type: "string" },
    video: { type: "string" },
  },
});
const PATIENCE_MS = 12_000;
const config = JSON.parse(readFileSync(`${values.folder}/web.json`, "utf8"));
const keys = ["wwsf", "epcscf", "facilitator"].map((name) =>
  readFileSync(`${values.folder}/${name}.hash`, "utf8"),
);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: [
    // The testbed needs root, and Chromium has no sandbox for root. It opens only the testbed's pages.
    "--no-sandbox",
    "--disable-gpu",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    // No authority has signed these keys; the browser takes no others.
    `--ignore-certificate-errors-spki-list=${keys.join(",")}`,
  ],
});
const started = Date.now();
const page = await browser.newPage();
const complaints = [];
page.on("pageerror", (error) => complaints.push(error.message));
const happened = (type) =>
  page.waitForFunction(
    (wanted) => window.phone?.events.find((event) => event.type === wanted),
    type,
    { timeout: PATIENCE_MS, polling: 50 },
  );
const result = {};
if (values.video) {
  await watch(values.video);
  process.exit(result.error ? 1 : 0);
}
try {
  await page.goto(`https://${config.addresses.wwsf}:${new URL(config.wwsf).port}/`);
  if (values.visit) await page.click("#visit");
  else {
    await page.fill("[name=name]", values.name ?? "");
    await page.fill("[name=password]", values.password ?? "");
    await page.click("#login");
  }
  await happened("registered");
  result.registeredMs = Date.now() - started;
  if (values.call) {
    await page.fill("[name=target]", values.call);
    await page.click("#dial button");
  }
  if (values.call || values["wait-for-call"]) {
    await happened("established");
    await page.waitForTimeout(1000 * Number(values.seconds));
    Object.assign(result, await page.evaluate(received));
    if (values.photograph) await page.screenshot({ path: values.photograph });
    if (values.hold) {
      await page.click("#hold");
      await happened("held");
    }
    if (!values["until-ended"]) await page.click("#end");
    await happened("ended");
  }
  result.firstPicture = await page.evaluate(() => window.phone.firstPicture);
  await page.evaluate(() => window.phone.agent.register(0));
  await happened("deregistered");
} catch (error) {
  result.error = error.message.split("\n")[0];
}
Object.assign(
  result,
  await page
    .evaluate(() => {
      const { events, messages, account } = window.phone ?? { events: [], messages: [] };
      return { events, messages, account: { address: account?.address } };
    })
    .catch(() => ({})),
  { complaints },
);
leave(result);
// A visitor gives the identity back.
await page.click("text=Log out", { timeout: 2000 }).catch(() => {});
console.log(JSON.stringify(result));
await browser.close();
process.exitCode = result.error ? 1 : 0;

/** Leaves the messages of the page for `weir ims record`. */
function leave({ messages = [], account, firstPicture }) {
  const name = config.terminals[account?.address] ?? "terminal";
  const file = `${values.folder}/terminal-${name}.jsonl`;
  const put = (time, from, to, protocol, title, text) => {
    const line = {
      time_ns: `${Math.round(1000 * time)}000`,
      from,
      to,
      protocol,
      name: title,
      text,
    };
    appendFileSync(file, `${JSON.stringify(line)}\n`);
  };
  for (const { time, isSent, text: whole } of messages) {
    const text = whole.replace(/(access_token=")[^"]+/, "$1(left out)");
    const [, method] = /^CSeq: *\d+ +(\w+)/im.exec(text) ?? [];
    const code = /^SIP\/2\.0 (\d{3})/.exec(text)?.[1];
    const title = code ? `${code} ${method}` : (method ?? "unreadable");
    const [from, to] = isSent ? [name, "epcscf"] : ["epcscf", name];
    put(time, from, to, "SIP", title, text);
  }
  if (firstPicture) put(firstPicture, name, name, "media", "first picture", "");
}

/** Opens the link of a facilitator, and stays until the telephone call ends. */
async function watch(link) {
  const stats = [];
  try {
    await page.goto(link);
    const over = () => page.evaluate(() => window.video?.events.at(-1)?.type === "ended");
    const start = Date.now();
    while (!(await over())) {
      stats.push(await page.evaluate(received));
      if (values.photograph && stats.at(-1).framesDecoded > 0 && !result.photograph) {
        result.photograph = values.photograph;
        await page.screenshot({ path: values.photograph });
      }
      if (Date.now() - start > 2 * PATIENCE_MS) throw new Error("the call does not end");
      await page.waitForTimeout(100);
    }
    result.events = await page.evaluate(() => window.video.events);
    result.state = await page.evaluate(() => window.video.connection.connectionState);
  } catch (error) {
    result.error = error.message.split("\n")[0];
  }
  const most = (name) => Math.max(0, ...stats.map((one) => one[name]));
  result.framesDecoded = most("framesDecoded");
  result.videoPackets = most("videoPackets");
  console.log(JSON.stringify({ ...result, complaints }));
  await browser.close();
}

/** What has come from the other side. */
async function received() {
  const { connection } = window.phone ?? window.video ?? {};
  if (!connection) return { framesDecoded: 0, videoPackets: 0 };
  const reports = [...(await connection.getStats()).values()];
  const of = (kind) => reports.find((one) => one.type === "inbound-rtp" && one.kind === kind);
  const pair = reports.find((one) => one.type === "candidate-pair" && one.nominated);
  const remote = reports.find((one) => one.id === pair?.remoteCandidateId);
  return {
    dtls: reports.filter((one) => one.type === "transport").map((one) => one.dtlsState),
    remoteAddress: remote?.address,
    audioPackets: of("audio")?.packetsReceived ?? 0,
    videoPackets: of("video")?.packetsReceived ?? 0,
    framesDecoded: of("video")?.framesDecoded ?? 0,
  };
}
