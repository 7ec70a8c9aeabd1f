# A Markdown table of the cellular cases of RFC 8869, from
# `weir run 'rfc8869/cellular-2.?/*' --controller NAMES --json`: the evaluation from 30 to 60 s.
# A user's value counts if it was there. Rates are in Mbit/s, delays are 95th percentiles in ms.
def r: if . == null then "-" elif . >= 100 then (round | tostring) else (. * 100 | round / 100 | tostring) end;
def mean: if length == 0 then null else add / length end;
def median: sort | if length == 0 then null else .[(length - 1) / 2 | floor] end;
def of($kind; path): [.flows[] | select(.kind == $kind) | .sections[0] | path | select(. != null)];
"| scenario | controller | users | cell | a user | least | delay, median user | worst user | lost by the worst, % | audio, median delay | TCP |",
"|---|---|---|---|---|---|---|---|---|---|---|",
(.[] | of("media"; .rate_mbps.mean) as $rates | of("media"; .queuing_delay_ms.p95) as $delays
 | "| `\(.scenario)` | \(.controller) | \($rates | length) | \([.flows[].sections[0].rate_mbps.mean | select(. != null)] | add | r) | \($rates | mean | r) | \($rates | min | r) | \($delays | median | r) | \($delays | max | r) | \(of("media"; .loss_ratio.mean) | max | if . == null then . else . * 100 end | r) | \(of("audio"; .queuing_delay_ms.p95) | median | r) | \(of("tcp"; .rate_mbps.mean) | add | r) |")
