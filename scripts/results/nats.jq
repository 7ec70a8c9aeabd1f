# A Markdown table of calls behind NATs and through hand-overs, one row for each run:
# `jq -rn -f scripts/results/nats.jq runs/*/*/run.json runs/*/*/summary.json runs/*/*/call.json`.
# The set-up is from the start of the call until media can flow, ICE the part of it from both
# descriptions to a path; means over both peers. Frozen is the time for which pictures stood still.
# The candidates are those of the last pair of peer a.
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def rounded($digits):
  pow(10; $digits) as $unit | if . == null then "-" else . * $unit | round / $unit | tostring end;
def side: .candidateType + (if .relayProtocol then " over " + .relayProtocol else "" end);
def path: if . then "\(.local | side), \(.remote | side)" else "-" end;

[reduce inputs as $file ({};
  (input_filename | sub("[^/]*$"; "")) as $folder
  | if $file.expect then .[$folder] += ($file | {scenario, engine, summary: .calls, expect})
    elif $file.peers then .[$folder] += {call: $file}
    else . end)
 | to_entries[] | .value | select(.engine == "call")]
| "| scenario | result | set-up, ms | of it ICE, ms | first frame, ms | candidates of a: own, far | frozen, s | expectations |",
  "|---|---|---|---|---|---|---|---|",
  (sort_by(.scenario)[]
   | .call as $call
   | ([$call.calls[].failure | select(.)] | first) as $failure
   | ([$call.peers[] | select(.participant == "a")] | first) as $a
   | (if $call.disturbed then ", disturbed" else "" end) as $mark
   | [ "`\(.scenario)`", ($failure // "connected") + $mark,
       (.summary.setup_ms | rounded(0)), (.summary.ice_ms | rounded(0)),
       (.summary.first_frame_ms | rounded(0)), ($a.candidate_pair | path),
       (.summary.frozen_s | rounded(1)),
       "\([.expect[] | select(.pass)] | length) of \(.expect | length) hold" ]
   | "| \(join(" | ")) |")
