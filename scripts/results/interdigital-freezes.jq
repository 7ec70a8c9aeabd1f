# A Markdown table of the freezes of the video in each section, from
# `weir run 'interdigital/mac/fec*' --controller gcc-2013 --seeds 10 --json`: means over the ten seeds
# and 95 % confidence intervals (Student's t with 9 degrees of freedom: 2.262).
def digits($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
def interval($n): (add / length) as $mean | length as $runs
  | (map(pow(. - $mean; 2)) | add / ($runs - 1) | sqrt * 2.262 / ($runs | sqrt)) as $half
  | "\($mean | digits($n)) ± \($half | digits($n))";
def sections($names): .flows[0].sections | map(select(.name | IN($names[])));
def delay($name): sections([$name])[0].frame_delay_ms.p50;
def loaded: sections(["medium load", "high load"]) | map(.freeze_count) | add;
"| scenario | freezes | under load | otherwise | frozen, s | frame delay ramping up, ms | alone | recovered |",
"|---|---|---|---|---|---|---|---|",
(group_by(.scenario)[] | "| `\(.[0].scenario)` | \(map(.flows[0].freeze_count) | interval(1)) | \(map(loaded) | interval(1)) | \(map(.flows[0].freeze_count - loaded) | interval(1)) | \(map(.flows[0].freeze_duration_s) | interval(1)) | \(map(delay("ramp-up")) | interval(0)) | \(map(delay("nobody competes")) | interval(0)) | \(map(delay("recovered")) | interval(0)) |")
