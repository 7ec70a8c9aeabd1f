# A Markdown table of the flows of scenarios, one row for each scenario, from `weir run ... --seeds N --json`:
#
#   weir run 'goals/tcp/*' --controller sluice --seeds 5 --json | jq -r -f scripts/results/rfc9743.jq
#
# Means over the seeds. The rates of media are the least and the largest of the flows of the controller. "Others" are
# TCP flows, other loads and the other controller of goals/rivals. Queue and loss are those of the media flow with the longest queue and with the most losses. Where the
# scenario has a section "both", in which all flows are there, the figures are those of that section.
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def fixed($n): if . == null then "-" else . * pow(10; $n) | round / pow(10; $n) | tostring end;
def part: . as $flow | ((.sections // []) | map(select(.name == "both")) | first) // $flow;
def used: (((.sections // []) | map(select(.name == "both")) | first) // .).link.utilization;
# The second flow of goals/rivals is the other controller. Audio is left out.
def flows($own): .scenario as $scenario | [.flows[] | select(.kind != "audio")
  | select((.kind == "media" and (.flow != "media-2" or ($scenario | startswith("goals/rivals") | not))) == $own)];
def rates($own): flows($own) | map(part.rate_mbps.mean) | select(length > 0);
def span($low; $high): if $low == null then "-" elif ($low | fixed(2)) == ($high | fixed(2)) then $low | fixed(2) else "\($low | fixed(2)) to \($high | fixed(2))" end;
"| scenario | link used | media, Mbit/s | others, Mbit/s | queue p95, ms | lost, % |",
"|---|---:|---:|---:|---:|---:|",
(group_by(.scenario)[]
 | "| `\(.[0].scenario)` | \(map(used) | mean | fixed(2)) | \(
   span(map(rates(true) | min) | mean; map(rates(true) | max) | mean)) | \(
   span(map(rates(false) | min) | mean; map(rates(false) | max) | mean)) | \(
   map(flows(true) | map(part.queuing_delay_ms.p95) | max) | mean | fixed(0)) | \(
   map(flows(true) | map(part.loss_ratio.mean) | max) | mean | if . == null then null else . * 100 end | fixed(1)) |")
