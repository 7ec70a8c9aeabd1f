# A Markdown table of the topologies of calls, one row for each scenario, from the records of runs:
# `jq -rn -f scripts/results/topologies.jq calls/*/*/summary.json calls/*/*/call.json`.
# Rates, set-up times, processor and memory are those of a participant on average. A server has
# numbers of its own, and the last number adds up all programs of the call. Values are means over
# the runs without disturbed runs and runs with a failed call, except the count of connections. If
# all runs were disturbed, they are shown and marked.
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def rounded($digits): pow(10; $digits) as $unit | if . == null then "-" else . * $unit | round / $unit | tostring end;
def lasted: .calls.succeeded == .calls.made;
def counting: map(select(lasted)) | (map(select((.calls.disturbed // .calls.bent) | not)) | if length > 0 then . else null end) // .;
def topology: .scenario | ltrimstr("aalto/topology/") | split("/")[0];
# A number of the programs whose names pass, added up; null without one.
def total(pick; value): [.programs[] | select(.name | pick) | value | select(. != null)] | if length == 0 then null else add end;
def cores(pick): total(pick; .cpu_cores * 100);
def megabytes(pick): total(pick; .memory_bytes / 1e6);
def order: {"one-to-many": 1, "mesh": 2, "forwarding-server": 3, "mixer": 4}[topology];

[reduce inputs as $file ({};
  (input_filename | sub("[^/]*$"; "")) as $folder
  | if $file.scenario then .[$folder] += ($file | {scenario, engine, calls})
    else .[$folder] += {programs: $file.participants, picture: $file.picture} end)
 | .[] | select((.scenario // "" | startswith("aalto/topology/")) and .engine == "call")]
| "| scenario | participants | picture | connections | set-up, first frame, ms | sent, received, Mbit/s | processor, % of a core: each, server, all | memory, MB: each, server, all |",
  "|---|---|---|---|---|---|---|---|",
  (group_by([order, .picture.height, .calls.participants, .scenario])[]
   | counting as $runs
   | ($runs | [([.[].calls.setup_ms] | mean), ([.[].calls.first_frame_ms] | mean)] | map(rounded(0)) | join(", ")) as $setup
   | ($runs | [([.[].calls.send_rate_mbps] | mean), ([.[].calls.receive_rate_mbps] | mean)] | map(rounded(2)) | join(", ")) as $rates
   | ($runs | [([.[].calls.cpu_cores] | mean | if . then . * 100 else . end), ([.[] | cores(. == "server")] | mean), ([.[] | cores(true)] | mean)]
      | map(rounded(0)) | join(", ")) as $processor
   | ($runs | [([.[].calls.memory_mb] | mean), ([.[] | megabytes(. == "server")] | mean), ([.[] | megabytes(true)] | mean)]
      | map(rounded(0)) | join(", ")) as $memory
   | (if any($runs[]; .calls.disturbed // .calls.bent) then ", disturbed" else "" end) as $mark
   | [ "`\(.[0].scenario)`\($mark)", (.[0].calls.participants | tostring), "\(.[0].picture.width)x\(.[0].picture.height)",
       "\([.[].calls.succeeded] | add) of \([.[].calls.made] | add)", $setup, $rates, $processor, $memory ]
   | "| \(join(" | ")) |")
