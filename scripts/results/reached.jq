# A Markdown table of what one controller reaches in each scenario, from `weir research score ... --json`:
#
#   weir research score 'goals/edge/*' --controller sluice --seeds 5 --json | jq -r -f scripts/results/reached.jq
#
# Means over the seeds. "Received / available" is what arrives, divided by what the path leaves for media, and
# "possible" is the same of the oracle; both from 3 s after the start. The delays are p95 without the first 2 s after
# each fall of the capacity.
def mean: add / length;
def fixed($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
.runs
| "| scenario | received / available | possible | queue, ms | sender, ms | lost, % |", "|---|---:|---:|---:|---:|---:|",
  (group_by(.scenario)[]
   | (map(.available_mbps) | mean) as $available
   | "| `\(.[0].scenario)` | \((map(.rate_mbps) | mean) / $available | fixed(3)) | \(
       (map(.possible_mbps) | mean) / $available | fixed(3)) | \(
       map(.network_ms) | mean | fixed(0)) | \(map(.sender_ms) | mean | fixed(0)) | \(
       map(.loss_ratio) | mean * 100 | fixed(2)) |")
