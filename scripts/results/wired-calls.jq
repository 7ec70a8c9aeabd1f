# A Markdown table of every scenario with real calls, one row for each section: paper, call,
# simulation and the error of the simulation, from the summaries of records:
# `jq -rs --arg only '^aalto/' -f scripts/results/wired-calls.jq runs/*/*/summary.json`.
# Rates are in Mbit/s, one number for each flow in the scenario's order; rates of TCP and UDP follow
# a semicolon. Error: of the sum of the media flows. Queue: 95th percentile of the queuing delay of
# the worst media flow. One-way delay: over whole calls. Values are means over the seeds, without
# disturbed runs and runs with a failed call.
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def sound: .engine != "call" or (((.calls.disturbed // .calls.bent) | not) and .calls.succeeded == .calls.made);
def shown: if . == null then "-" else (. * 100 | round / 100 | tostring) end;
# Metrics of a flow, over the whole time or a section.
def part($section): if $section == null then . else (.sections[] | select(.name == $section)) end;
# A value of each flow of some kinds, as means over the runs.
def each($kinds; $section; value):
  if length == 0 then [] else
    . as $runs | [.[0].flows[] | select(.kind | IN($kinds[])) | .flow]
    | map(. as $flow | [$runs[].flows[] | select(.flow == $flow) | part($section) | value] | mean)
  end;
def rates($section):
  (each(["media"]; $section; .rate_mbps.mean) | map(shown) | join(", ")) as $media
  | (each(["tcp", "udp"]; $section; .rate_mbps.mean) | map(shown) | join(", ")) as $loads
  | if $loads == "" then $media else "\($media); \($loads)" end;
def total($section): each(["media"]; $section; .rate_mbps.mean) | map(select(. != null)) | add;
def queue($section): each(["media"]; $section; .queuing_delay_ms.p95) | max | if . == null then "-" else round | tostring end;
def error($real; $simulated):
  if ($real // 0) == 0 or $simulated == null then "-"
  else (100 * ($simulated - $real) / $real | round | if . > 0 then "+\(.)" else tostring end) + " %" end;
# Published rates; utilization if the paper prints only that.
def published($section):
  [.[].paper[] | select(.section == $section) | select(.metric == "rate_mbps.mean" or .metric == "utilization")]
  | (map(select(.metric == "rate_mbps.mean")) | if length > 0 then . else null end)
    // map(.published |= "U " + .)
  | reduce .[] as $row ([]; if any(.[]; .flow == $row.flow and .published == $row.published) then . else . + [$row] end)
  | map(.published) | join("; ");
# One-way delay of the video's packets, from the captures of whole calls.
def one_way:
  map(.calls.one_way_delay_ms | select(. != null))
  | if length == 0 then "-" else "\(map(.p50) | mean | round), \(map(.p95) | mean | round)" end;

"| scenario, section | paper | called | gcc-draft | error | gcc | error | queue, ms: called, gcc-draft, gcc | one-way delay called, ms: median, p95 |",
"|---|---|---|---|---|---|---|---|---|",
(map(select((.scenario | test($only)) and sound)) | group_by(.scenario)[] | . as $runs
 | map(select(.engine == "call")) as $called
 | map(select(.engine == "sim" and .controller == "gcc-draft")) as $draft
 | map(select(.engine == "sim" and .controller == "gcc")) as $gcc
 | select($called | length > 0)
 | ($called[0].flows[0].sections | map(.name) | if length == 0 then [null] else . end)[] as $section
 | [ "`\($called[0].scenario)`\(if $section then ", \($section)" else "" end)",
     ($runs | published($section)),
     ($called | rates($section)),
     ($draft | rates($section)),
     error($called | total($section); $draft | total($section)),
     ($gcc | rates($section)),
     error($called | total($section); $gcc | total($section)),
     ([$called, $draft, $gcc] | map(queue($section)) | join(", ")),
     ($called | one_way) ]
 | "| \(join(" | ")) |")
