//! Variants of a file.

use super::*;

const VARIED: &str = r#"
[[expect]]
text = "half of the link"
metric = "utilization"
flow = "every"
above = 0.5
[[known_miss]]
expect = "half of the link"
controllers = ["scream"]
why = "it yields"
[variant.far]
title = "far"
network.up.delay = "300ms"
known_miss = []
"#;

#[test]
fn a_variant_replaces_single_keys_and_whole_lists() {
    let base = parse("x", &small(VARIED), None).unwrap();
    let far = parse_variant("x/far", &small(VARIED), "far", None).unwrap();
    assert_eq!((base.title.as_str(), far.title.as_str()), ("t", "far"));
    assert_eq!((base.variant, far.variant.as_deref()), (None, Some("far")));
    let delay = TimeDelta::from_millis(300).into();
    assert_eq!(far.hops[0].up, base.hops[0].up.clone().with_delay(delay));
    assert_eq!(far.flows, base.flows);
    assert_eq!(base.expectations[0].flow, ExpectedFlow::Every);
    let miss = base.expectations[0].known_miss("scream").expect("a known miss");
    assert_eq!((miss.why.as_str(), miss.by_chance), ("it yields", false));
    assert_eq!(base.expectations[0].known_miss("nada"), None);
    assert_eq!(far.expectations[0].known_miss("scream"), None);
}

#[test]
fn a_variant_s_mistakes_have_their_own_line() {
    let read = |variant: &str, name: &str| {
        let text = small(variant);
        parse_variant("x.toml", &text, name, None).unwrap_err().to_string()
    };
    assert_eq!(
        read("[variant.far]\nnetwork.up.dealy = \"1ms\"", "far"),
        "x.toml:9: network.up: unknown key 'dealy'; did you mean 'delay'?"
    );
    assert_eq!(
        read("[variant.far]", "near"),
        "x.toml:1: there is no variant 'near'; there is 'far'"
    );
    assert_eq!(
        read("[variant.far]\nvariant = {}", "far"),
        "x.toml:8: variant.far: a variant has no variants of its own"
    );
    assert_eq!(
        read("[variant]\nfar = 1", "far"),
        "x.toml:9: variant.far: expected a table, found the number '1'"
    );
}

#[test]
fn a_variant_of_a_file_is_named_behind_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, small(VARIED)).unwrap();
    let id = format!("{}/far", path.display());
    assert_eq!((one(&id).id, one(&id).title.as_str()), (id.clone(), "far"));
}
