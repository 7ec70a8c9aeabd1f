//! What the sources of the catalogue are. A source is a folder of `scenarios/`.

/// Each source with a line about it, in alphabetical order.
pub const SOURCES: [(&str, &str); 26] = [
    ("aalto", "Aalto thesis: calls of 2013 with losses, delays, loads"),
    ("accuracy", "how exactly the picture of a call is measured"),
    ("arena", "the networks on which `weir arena` compares stacks"),
    ("audio", "speech with losses and on thin links"),
    ("bari", "Bari paper of 2013: GCC on steps and beside TCP"),
    ("delft", "Delft thesis: browsers over wires, Wi-Fi and 4G"),
    ("demo", "first calls, L4S, and cells full of calls"),
    ("encoder", "what a browser's encoder makes of its target"),
    ("field", "links distributed as public sets: Starlink, 5G, 3G"),
    ("goals", "goals of `sluice`: fairness, TCP, losses, edge cases"),
    ("handover", "a path or an interface that changes in a call"),
    ("interdigital", "InterDigital paper of 2015: Wi-Fi, a hidden terminal"),
    ("l4s", "L4S (RFC 9330) on wires, LTE and Wi-Fi"),
    ("lund", "Lund thesis of 2022: GCC, NADA and SCReAM compared"),
    ("meeting", "a forwarding server with fifty participants"),
    ("mobile", "calls over LTE and NR, walking and driving"),
    ("nat", "real calls through NATs (RFC 4787)"),
    ("policer", "networks that drop what is above a rate"),
    ("quality", "what people see of a call"),
    ("quic", "media over QUIC, as its users ask for it"),
    ("repair", "random loss with and without repair"),
    ("rfc8836", "requirements of RFC 8836, one by one"),
    ("rfc8867", "test cases of RFC 8867, on wired links"),
    ("rfc8869", "test cases of RFC 8869, over Wi-Fi and cellular cells"),
    ("sfu", "forwarding servers, and faults of known ones"),
    ("wide", "any clock, any interval of reports, any rate"),
];

/// What a source is; nothing for one that has no line.
pub fn about(source: &str) -> &'static str {
    SOURCES.iter().find(|(name, _)| *name == source).map_or("", |(_, about)| about)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::catalogue;

    #[test]
    fn each_source_of_the_catalogue_has_one_line() {
        let mut sources: Vec<&str> = Vec::new();
        for id in catalogue::ids() {
            sources.push(id.split_once('/').expect("an id has a source").0);
        }
        sources.dedup();
        let described: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, sources, "write a line for each folder of scenarios/");
    }
}
