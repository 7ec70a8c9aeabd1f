// How a participant joins mediasoup's room: by its name. It has joined when it sees all others.

export default async function join(page, number, { participants }) {
  await page.fill("#me", `p${number}`);
  await page.click("#join");
  await page.waitForFunction(() => document.getElementById("state").textContent !== "outside");
  const state = await page.textContent("#state");
  if (state !== "in the room") throw new Error(state);
  await page.waitForFunction((others) => {
    const videos = [...document.querySelectorAll("#others video")];
    return videos.filter((video) => video.videoWidth > 0).length === others;
  }, participants - 1);
}
