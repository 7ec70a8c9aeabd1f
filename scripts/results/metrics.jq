# A Markdown table of metrics from `weir run ... --json`, one row for each scenario, controller and
# flow:
#
#   weir run 'lund/*' --seeds 5 --json | jq -r -f scripts/results/metrics.jq --args METRIC...
#
# A METRIC is a path in a flow's summary such as `queuing_delay_ms.p95`. `HEADING = PATH` gives its
# column a name, `PATH @ SECTION` takes the value of a section, and a PATH that begins with `run.`
# is a value of all flows together, such as `run.fairness.jain`. Values whose path ends in
# `loss_ratio.mean` are given in per cent. Over several seeds a cell is the mean with half the width
# of its 95 % confidence interval (Student's t). `--arg flow REGEX` takes only flows whose names
# match. With `--arg by controller` the columns are controllers.
def student: [null, null, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262][.]
  // (if . >= 20 then 2.093 else 2.201 end);
# Number of decimals for three significant digits, at most three.
def decimals: fabs | if . >= 100 then 0 elif . >= 10 then 1 elif . >= 1 then 2 else 3 end;
def fixed($n):
  (if . < 0 then "-" else "" end) as $sign
  | (fabs * pow(10; $n) | round | tostring) as $digits
  | if $n == 0 then $sign + $digits
    else (if ($digits | length) <= $n then ("0" * ($n + 1 - ($digits | length))) + $digits else $digits end)
      | $sign + .[:-$n] + "." + .[-$n:] end;
def shown:
  map(select(. != null)) | length as $count
  | if $count == 0 then "-" else
      (add / $count) as $mean | ($mean | decimals) as $n
      | if $count == 1 then $mean | fixed($n)
        else (map(pow(. - $mean; 2)) | add / ($count - 1) | sqrt) as $deviation
          | "\($mean | fixed($n)) ± \($deviation * ($count | student) / ($count | sqrt) | fixed($n))" end
    end;
# Parses an argument into {heading, path, section}.
def metric:
  (split(" = ") | if length > 1 then {heading: .[0], rest: .[1]} else {heading: .[0], rest: .[0]} end)
  | (.rest | split(" @ ")) as $parts
  | {heading, path: $parts[0], section: $parts[1]};
def part($section): if $section == null then . else (.sections[]? | select(.name == $section)) end;
def value($metric; $flow):
  (if $metric.path | startswith("run.") then .
   else (.flows[] | select(.flow == $flow)) end)
  | [part($metric.section) | getpath($metric.path | ltrimstr("run.") | split("."))?][0]
  | if . != null and ($metric.path | endswith("loss_ratio.mean")) then . * 100 else . end;
($ARGS.named.flow // "") as $only
| ($ARGS.positional | map(metric)) as $metrics
| [group_by(.scenario)[] | . as $runs | .[0].scenario as $scenario
   | [.[0].flows[].flow | select(test($only))] as $flows
   | (reduce .[].controller as $name ([]; if index($name) then . else . + [$name] end))[] as $controller
   | $flows[] as $flow
   | [$runs[] | select(.controller == $controller)] as $group
   | {$scenario, $controller, $flow,
      cells: [$metrics[] as $metric | [$group[] | value($metric; $flow)] | shown]}] as $rows
| ($rows | any(group_by([.scenario, .controller])[]; length > 1)) as $several
| if $ARGS.named.by == "controller" then
    (reduce $rows[].controller as $name ([]; if index($name) then . else . + [$name] end)) as $names
    | ["scenario", (if $several then "flow" else empty end), "metric"] + $names
    | "| \(join(" | ")) |", "|\(map("---|") | join(""))",
      (reduce $rows[] as $row ([]; [$row.scenario, $row.flow] as $key | if index([$key]) then . else . + [$key] end)
       | .[] as [$scenario, $flow] | range($metrics | length) as $at
       | [$rows[] | select(.scenario == $scenario and .flow == $flow)] as $of
       | ["`\($scenario)`", (if $several then $flow else empty end), $metrics[$at].heading]
         + [$names[] as $name | [$of[] | select(.controller == $name) | .cells[$at]][0] // "-"]
       | "| \(join(" | ")) |")
  else
    ["scenario", "controller", (if $several then "flow" else empty end)] + ($metrics | map(.heading))
    | "| \(join(" | ")) |", "|\(map("---|") | join(""))",
      ($rows[] | ["`\(.scenario)`", .controller, (if $several then .flow else empty end)] + .cells
       | "| \(join(" | ")) |")
  end
