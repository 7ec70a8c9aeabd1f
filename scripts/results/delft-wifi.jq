# A Markdown table that compares Tables 6.4 to 6.7 of the Delft thesis with the output of
# `weir run 'delft/wifi-?/s?' --controller gcc,gcc-draft --json`. A cell contains all sections of a
# scenario.
def r: if . == null then "-" elif . >= 10 then (round | tostring) else (. * 100 | round / 100 | tostring) end;
def ours: if .metric == "loss_ratio.mean" then (.measured | if . == null then null else . * 100 end) else .measured end | r;
def name: {"rate_mbps.mean": "rate, Mbit/s", "rtt_above_min_ms.mean": "mean delay, ms", "loss_ratio.mean": "lost, %"}[.];
"| scenario | flow | | published | gcc | gcc-draft |", "|---|---|---|---|---|---|",
([.[] | .controller as $controller | .scenario as $scenario | .paper[] | select(.metric | name != null)
   | . + {controller: $controller, scenario: $scenario, flow: (.flow // "media-1")}]
 | group_by([.scenario, .flow, .metric])[]
 | (map(select(.controller == "gcc"))) as $gcc | (map(select(.controller == "gcc-draft"))) as $draft
 | "| `\(.[0].scenario)` | \(.[0].flow) | \(.[0].metric | name) | \($gcc | map(.published | sub(" %"; "")) | join(", ")) | \($gcc | map(ours) | join(", ")) | \($draft | map(ours) | join(", ")) |")
