# A Markdown table of controllers side by side, from `weir research score ... --controller LIST --json`:
#
#   weir research score 'l4s/*' --controller sluice,peers --json | jq -r -f scripts/results/newest-peers.jq
#
# Each cell has the share of the possible rate that is used, the p95 of the queue in the network and in the sender in ms, and the
# loss beyond the path's own in per cent. Each is a mean over the seeds. With `--arg by NAME` all scenarios are one row of this name.
def mean: add / length;
def fixed($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
def cell:
  "\(map(.rate_mbps / .available_mbps) | mean | fixed(2)) / \(map(.network_ms) | mean | fixed(0)) / "
  + "\(map(.sender_ms) | mean | fixed(0)) / \(map(.loss_ratio) | mean * 100 | fixed(1))";
(reduce .runs[].controller as $name ([]; if index($name) then . else . + [$name] end)) as $names
| ($ARGS.named.by // null) as $by
| [.runs | group_by(if $by == null then .scenario else 0 end)[]
   | {name: (if $by == null then "`\(.[0].scenario)`" else $by end), runs: .}] as $rows
| (["scenario"] + $names | "| \(join(" | ")) |"),
  (["---"] + ($names | map("---")) | "|\(join("|"))|"),
  ($rows[] | .runs as $runs
   | [.name] + [$names[] as $name | [$runs[] | select(.controller == $name)] | cell]
   | "| \(join(" | ")) |")
