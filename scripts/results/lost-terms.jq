# What one controller loses scenarios by, from `weir research score ... --own CONTROLLER --json`:
#
#   weir research score target/free/*/*.toml --controller all --seeds 2 --json | jq -r --arg own sluice -f scripts/results/lost-terms.jq
#
# The first table has a row for each other controller: the share of scenarios that are won (the mean regret is lower by 0.01), and
# what it would be if one term of the regret were that of the other controller. The second has the families in which the mean
# regret is higher than the other's, and the difference of each term there: above 0 is worse.
def mean: add / length;
def fixed($n): . * pow(10; $n) | round / pow(10; $n) | tostring;
def percent: "\(100 * . | round) %";
["rate", "delay", "loss", "fairness", "response"] as $names
| [.runs | group_by([.scenario, .controller])[]
   | {scenario: .[0].scenario, family: .[0].family, controller: .[0].controller,
      terms: (. as $runs | [range(5) as $term | [$runs[].terms[$term]] | mean])}] as $all
| (reduce ($all[] | select(.controller == $own)) as $run ({}; .[$run.scenario] = $run.terms)) as $owned
| [$all[] | select(.controller != $own)
   | .terms as $terms
   | . + {worse: [range(5) as $term | $owned[.scenario][$term] - $terms[$term]]}] as $pairs
| ($pairs | group_by(.controller)) as $by
| (["other controller", "won"] + ($names | map("with its \(.)")) | "| \(join(" | ")) |"),
  "|---|---:|---:|---:|---:|---:|---:|",
  ($by[] | . as $rival
   | [.[0].controller, ($rival | map(select(.worse | add < -0.01)) | length / ($rival | length) | percent)]
     + [range(5) as $term
        | $rival | map(select((.worse | add) - .worse[$term] < -0.01)) | length / ($rival | length) | percent]
   | "| \(join(" | ")) |"),
  "",
  (["other controller", "family", "scenarios: won, lost", "regret"] + $names | "| \(join(" | ")) |"),
  "|---|---|---|---:|---:|---:|---:|---:|---:|",
  ($by[] | group_by(.family)[] | . as $family | (map(.worse | add) | mean) as $regret
   | select($regret > 0)
   | [.[0].controller, .[0].family,
      "\($family | map(select(.worse | add < -0.01)) | length), \($family | map(select(.worse | add > 0.01)) | length)",
      ($regret | fixed(3))]
     + [range(5) as $term | $family | map(.worse[$term]) | mean | fixed(3)]
   | "| \(join(" | ")) |")
