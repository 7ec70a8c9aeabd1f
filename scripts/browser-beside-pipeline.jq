# A Markdown table of one scenario under Chromium's own congestion control and as pipelines under ours, from the
# records: `jq -rn --arg scenario lund/sudden-reduction -f scripts/browser-beside-pipeline.jq
# calls/*/*/summary.json calls/*/*/call.json`. Values are means over the runs; a failed call counts in none.
def rows: [["Chromium's GCC", "chromium"], ["`gcc` in a pipeline", "gcc"],
  ["Chromium's SCReAM v2", "chromium-scream-v2"], ["`scream-v2` in a pipeline", "scream-v2"]];
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def shown($digits): pow(10; $digits) as $unit | if . == null then "-" else . * $unit | round / $unit | tostring end;

[reduce inputs as $file ({};
  (input_filename | sub("[^/]*$"; "")) as $folder
  | if $file.scenario then .[$folder] += $file
    else .[$folder] += {received: [$file.peers[].intervals[] | select(.receive_bps != null)]} end)
 | .[] | select(.scenario == $scenario and .engine == "call" and .calls.made == .calls.succeeded)] as $all
| "| sender | calls | rate, Mbit/s | rate over capacity | p95 of the queue, ms | RTT, ms | loss, % | frames/s received | frozen, s |",
  "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
  (rows[] as [$name, $controller]
   | [$all[] | select(.controller == $controller)] as $runs
   | (if any($runs[]; .calls.disturbed // .calls.bent) then ", disturbed" else "" end) as $mark
   | def of(value; $digits): [$runs[].flows[0] | value] | mean | shown($digits);
     ([$runs[].received[].frame_rate] | mean | shown(1)) as $frames
     | ([$runs[] | [.received[].frozen_s // 0] | add] | mean | shown(1)) as $frozen |
     if $runs == [] then "| \($name) | 0 | not run | | | | | | |"
     else "| \([$name + $mark, ($runs | length | tostring), of(.rate_mbps.mean; 3), of(.utilization; 2),
       of(.queuing_delay_ms.p95; 0), of(.rtt_ms.mean; 0), of(.loss_ratio.mean | if . == null then null else . * 100 end; 2),
       $frames, $frozen] | join(" | ")) |" end)
