# Markdown tables of simulated forwarding servers from `weir run 'sfu/*' --json`:
#
#   weir run 'sfu/*' --controller gcc --json | jq -r -f scripts/results/sfu.jq --arg table means
#
# `--arg table means` has a row for each server and controller: means over the scenarios, of the means
# over their subscribers. `--arg table below` and `--arg table frozen` have a row for each scenario, and a column
# for each server and controller: time below the best layer in per cent, and seconds frozen, both
# of the subscriber for whom it is worst. `--arg table good` has the mean good time of its
# subscribers in per cent.
def server: (.scenario | split("/"))[2] // "weir";
def name: "\(server), \(.controller)";
def case: (.scenario | split("/"))[1];
def subscribers: [.flows[] | select(.padding_share != null)];
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def shown($decimals):
  if . == null then "-" else (. * pow(10; $decimals) | round) / pow(10; $decimals) | tostring end;
def row: "| \(join(" | ")) |";
def contenders: reduce .[] as $run ([]; ($run | name) as $name | if index([$name]) then . else . + [$name] end);
def percent: if . == null then null else . * 100 end;
def headings: ["good time, %", "below the best layer, %", "switches a minute", "key frames asked a minute",
  "frozen, s", "frozen by switches, s", "queue p95, ms", "frame delay p95, ms", "loss, %",
  "padding, %"];
def decimals: [1, 1, 2, 2, 2, 2, 0, 0, 2, 2];
def numbers: [(.good_ratio | percent), (.below_best_ratio | percent), .layer_switches_per_min,
  .key_frames_asked_per_min, .freeze_duration_s, .switch_freeze_s, .queuing_delay_ms.p95,
  .frame_delay_ms.p95, (.loss_ratio.mean | percent),
  (.padding_share | percent)];
# Which of the numbers a table has, over its subscribers, with so many decimals.
def cell: if $table == "good" then map(.[0]) | mean | shown(1)
  elif $table == "below" then map(.[1] | select(. != null)) | max | shown(1)
  else map(.[4] | select(. != null)) | max | shown(2) end;
. as $runs
| contenders as $names
| if $table == "means" then
    (["server", "controller"] + headings | row), ("|" + ("---|" * (2 + (headings | length)))),
    ($names[] as $name
     | [$runs[] | select(name == $name) | [subscribers[] | numbers]
        | [range(headings | length) as $at | [.[][$at]] | mean]] as $rows
     | ($name | split(", "))
       + [range(headings | length) as $at | [$rows[][$at]] | mean | shown(decimals[$at])]
     | row)
  else
    (["scenario"] + $names | row), ("|" + ("---|" * (1 + ($names | length)))),
    (reduce $runs[] as $run ([]; ($run | case) as $case | if index([$case]) then . else . + [$case] end)
     | .[] as $case
     | ["`sfu/\($case)`"]
       + [$names[] as $name
          | [$runs[] | select(name == $name and case == $case) | subscribers[] | numbers] | cell]
     | row)
  end
