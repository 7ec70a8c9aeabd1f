# A Markdown table of published and measured values by section, from `weir run ... --json`.
def round2: if . == null then "-" elif . >= 10 then (. * 10 | round / 10 | tostring) elif . >= 0.1 then (. * 100 | round / 100 | tostring) else (. * 10000 | round / 10000 | tostring) end;
def ours($row): if ($row.published | endswith("%")) then ($row.measured | if . == null then "-" else (. * 100 | round2) + " %" end) else ($row.measured | round2) end;
.[] | "\n`\(.scenario)` under \(.controller), seed \(.seed): published → ours\n",
  ([.sections[].name] as $names
   | "| flow | metric | \($names | join(" | ")) |", "|---|---|\($names | map("---|") | join(""))",
     (.paper | group_by([.flow, .metric])[]
      | "| \(.[0].flow // "media-1") | `\(.[0].metric)` | \(map("\(.published) → \(ours(.))") | join(" | ")) |"))
