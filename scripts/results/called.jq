# A Markdown table of published values, real calls, and simulations of these, from the summaries of
# records: `jq -rs -f scripts/results/called.jq runs/*/*/summary.json`. Values are means over the seeds,
# without disturbed runs. Runs with a failed call count only in the metrics of calls.
def shown: if . == null then "-" elif fabs >= 10 then (. * 10 | round / 10 | tostring) elif fabs >= 0.1 then (. * 100 | round / 100 | tostring) else (. * 10000 | round / 10000 | tostring) end;
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def column: if .engine == "call" then "\(.controller), called" else "\(.controller), simulated" end;
def sound: .engine != "call" or ((.calls.disturbed // .calls.bent) | not);
def lasted: .engine != "call" or .calls.succeeded == .calls.made;
group_by(.scenario)[] | map(select(sound)) | select(length > 0)
| (map(column) | unique) as $columns
| "\n`\(.[0].scenario)`\n", "| \(["where", "section", "metric", "paper"] + $columns | join(" | ")) |",
  "|---|---|---|---|\($columns | map("---|") | join(""))",
  ([.[] | column as $column | lasted as $lasted | .paper[]
    | select($lasted or (.metric | startswith("calls."))) + {column: $column}]
   | group_by([.where, .section, .flow, .metric])[]
   | . as $rows
   | .[0] as $first
   | ($columns | map(. as $column | [$rows[] | select(.column == $column) | .measured] | mean
      | if . != null and ($first.published | endswith("%")) then (. * 100 | shown) + " %" else shown end)) as $ours
   | "| \([$first.where, $first.section // "whole", (if $first.flow then "\($first.flow) " else "" end) + "`\($first.metric)`", $first.published] + $ours | join(" | ")) |")
