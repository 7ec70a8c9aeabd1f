# A row for each call of `weir arena` or `weir call --quality`, from their files summary.json:
#
#   jq -r -f scripts/results/quic-calls.jq RUNS/*/*/summary.json
(input_filename | split("/")[-2] | sub("^stack_"; "") | sub("-call-seed.*"; "")) as $stack
| (input_filename | split("/")[-3] | sub("__"; "/")) as $scenario
| .flows[0] as $flow
| def fixed($n): if . == null then "-" else (. * pow(10; $n) | round) / pow(10; $n) end;
"| \($scenario) | \($stack) | \($flow.utilization | fixed(2)) | \($flow.queuing_delay_ms.p95 | fixed(0)) | \(
$flow.loss_ratio.mean * 100 | fixed(1)) | \(.calls.b.frame_rate | fixed(1)) | \(.calls.b.frozen_s | fixed(1)) | \(
.calls.screen_delay_ms.p50 | fixed(0)) / \(.calls.screen_delay_ms.p95 | fixed(0)) |"
