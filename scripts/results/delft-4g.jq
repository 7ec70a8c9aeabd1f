# A Markdown table that compares Tables 6.8 and 6.9 of the Delft thesis with the output of
# `weir run 'delft/4g-?/s?' --controller NAMES --seeds N --json`. A cell contains all sections of a
# scenario, as means over the seeds; a column is a controller.
def r: if . == null then "-" elif . >= 10 then (round | tostring) else (. * 100 | round / 100 | tostring) end;
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def name: {"rate_mbps.mean": "rate, Mbit/s", "rtt_above_min_ms.mean": "mean delay, ms", "rtt_above_min_ms.p50": "median delay, ms", "rtt_above_min_ms.p95": "p95 of the delay, ms"}[.];
(reduce .[].controller as $one ([]; if index($one) then . else . + [$one] end)) as $controllers
| "| scenario | flow | | published | \($controllers | join(" | ")) |",
  "|---|---|---|---|\($controllers | map("---|") | join(""))",
  ([.[] | .controller as $controller | .scenario as $scenario | .paper[] | select(.metric | name != null)
    | . + {controller: $controller, scenario: $scenario, flow: (.flow // "media-1")}]
   | group_by([.scenario, .flow, .metric])[] | . as $rows
   | (reduce .[].section as $one ([]; if index($one) then . else . + [$one] end)) as $sections
   | [$sections[] as $section | [$rows[] | select(.section == $section)][0].published] as $published
   | [$controllers[] as $controller
      | [$sections[] as $section | [$rows[] | select(.section == $section and .controller == $controller) | .measured] | mean | r] | join(", ")] as $ours
   | "| `\(.[0].scenario)` | \(.[0].flow) | \(.[0].metric | name) | \($published | join(", ")) | \($ours | join(" | ")) |")
