# A Markdown table from `weir run 'interdigital/mac/*' --controller gcc-2013 --json`: means over the
# seeds.
def r: if . == null then "-" else (. * 1000 | round / 1000 | tostring) end;
def mean: if length == 0 or any(. == null) then null else add / length end;
def over($section; path): map(.flows[0].sections[] | select(.name == $section) | path) | mean | r;
def cell($section; path): map(.sections[] | select(.name == $section) | .cell | path) | mean | r;
"| scenario | video rate alone, Mbit/s | medium | after | target alone | high | freezes | frozen, s | given up by a | competitors medium, Mbit/s | high | level high |",
"|---|---|---|---|---|---|---|---|---|---|---|---|",
(group_by(.scenario)[] | "| `\(.[0].scenario)` | \(over("nobody competes"; .media_rate_mbps)) | \(over("medium load"; .media_rate_mbps)) | \(over("after the high load"; .media_rate_mbps)) | \(over("nobody competes"; .target_rate_mbps)) | \(over("high load"; .target_rate_mbps)) | \(map(.flows[0].freeze_count) | mean | r) | \(map(.flows[0].freeze_duration_s) | mean | r) | \(map(.cell.a.loss_ratio) | mean | r) | \(cell("medium load"; .competitor.delivered_mbps)) | \(cell("high load"; .competitor.delivered_mbps)) | \(cell("high load"; .a.congestion_level)) |")
