# Markdown tables of simulated forwarding servers from `weir run 'sfu/*' --json`:
#
#   weir run 'sfu/*' --controller gcc --json | jq -r -f scripts/sfu.jq --arg table means
#
# `--arg table means` has a row for each server and controller: means over the subscribers of all
# scenarios. `--arg table below` and `--arg table frozen` have a row for each scenario, and a column
# for each server and controller: time below the best layer in per cent, and seconds frozen, both
# of the subscriber for whom it is worst.
def server: (.scenario | split("/"))[2] // "weir";
def name: "\(server), \(.controller)";
def case: (.scenario | split("/"))[1];
def subscribers: [.flows[] | select(.padding_share != null)];
def mean: map(select(. != null)) | if length == 0 then null else add / length end;
def shown($decimals):
  if . == null then "-" else (. * pow(10; $decimals) | round) / pow(10; $decimals) | tostring end;
def row: "| \(join(" | ")) |";
def contenders: reduce .[] as $run ([]; ($run | name) as $name | if index([$name]) then . else . + [$name] end);
def headings: ["below the best layer, %", "switches a minute", "key frames asked a minute",
  "frozen, s", "frozen by switches, s", "queue p95, ms", "frame delay p95, ms", "loss, %",
  "padding, %"];
def decimals: [1, 2, 2, 2, 2, 0, 0, 2, 2];
def numbers: [(.below_best_ratio | if . == null then null else . * 100 end), .layer_switches_per_min,
  .key_frames_asked_per_min, .freeze_duration_s, .switch_freeze_s, .queuing_delay_ms.p95,
  .frame_delay_ms.p95, (.loss_ratio.mean | if . == null then null else . * 100 end),
  (.padding_share | if . == null then null else . * 100 end)];
. as $runs
| contenders as $names
| if $table == "means" then
    (["server", "controller"] + headings | row), ("|" + ("---|" * (2 + (headings | length)))),
    ($names[] as $name
     | [$runs[] | select(name == $name) | subscribers[] | numbers] as $rows
     | ($name | split(", "))
       + [range(headings | length) as $at | [$rows[][$at]] | mean | shown(decimals[$at])]
     | row)
  else
    (["scenario"] + $names | row), ("|" + ("---|" * (1 + ($names | length)))),
    (reduce $runs[] as $run ([]; ($run | case) as $case | if index([$case]) then . else . + [$case] end)
     | .[] as $case
     | ["`sfu/\($case)`"]
       + [$names[] as $name
          | [$runs[] | select(name == $name and case == $case) | subscribers[]
             | if $table == "below" then numbers[0] else numbers[3] end]
          | map(select(. != null)) | max | shown(if $table == "below" then 1 else 2 end)]
     | row)
  end
