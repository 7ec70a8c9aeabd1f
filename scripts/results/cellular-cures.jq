# A Markdown table of remedies for a call beside TCP of its own terminal, from
# `weir run 'delft/4g-2/s?*' --controller NAMES --seeds N --json`: the section with TCP of both
# terminals, means over the seeds. Rates are in Mbit/s, delays in ms.
def r: if . == null then "-" elif . >= 100 then (round | tostring) else (. * 100 | round / 100 | tostring) end;
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def of($flow; path): map(.flows[] | select(.flow == $flow) | .sections[] | select(.name == "TCP of both terminals") | path) | mean | r;
"| scenario | controller | call up | delay | lost, % | call down | delay | lost, % | own TCP up | own TCP down | other TCP up | other TCP down |",
"|---|---|---|---|---|---|---|---|---|---|---|---|",
(group_by([.scenario, .controller])[]
 | "| `\(.[0].scenario)` | \(.[0].controller) | \([("media-1-up", "media-1-down") as $call
   | of($call; .rate_mbps.mean), of($call; .rtt_above_min_ms.mean), of($call; .loss_ratio.mean | if . == null then . else . * 100 end)] | join(" | ")) | \([("tcp-1-up", "tcp-1-down", "tcp-2-up", "tcp-2-down") as $tcp
   | of($tcp; .rate_mbps.mean)] | join(" | ")) |")
