# Summary of the table of `weir research validate cellular`: for each kind of run the values and how many are within.
NR == 1 { next }
/ values: / { last = $0; next }
{
    split($1, parts, "-")
    kind = parts[1]
    sub(/(EPA|ETU|EVA|AM|[0-9]+$).*/, "", kind)
    if (!(kind in values)) order[++kinds] = kind
    values[kind]++
    if ($NF == "within") within[kind]++
}
END {
    printf "%-12s  %6s  %6s\n", "runs", "values", "within"
    for (i = 1; i <= kinds; i++) printf "%-12s  %6d  %6d\n", order[i], values[order[i]], within[order[i]]
    print last
}
