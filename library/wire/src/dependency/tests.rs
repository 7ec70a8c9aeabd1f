use super::*;
use Indication::{Discardable, NotPresent, Required, Switch};
use alloc::string::String;
use alloc::vec;
use proptest::prelude::*;

/// A template: layers, references, chains and indications.
type Row = (u8, u8, &'static [u16], [u8; 3], &'static str);

/// The table of L3T3 in the standard.
const L3T3: [Row; 15] = [
    (0, 0, &[], [0, 0, 0], "SSSSSSSSS"),
    (0, 0, &[12], [12, 11, 10], "RRRRRRSSS"),
    (0, 1, &[6], [6, 5, 4], "RR-RR-SD-"),
    (0, 2, &[3], [3, 2, 1], "R--R--D--"),
    (0, 2, &[3], [9, 8, 7], "R--R--D--"),
    (1, 0, &[1], [1, 1, 1], "SSSSSS---"),
    (1, 0, &[12, 1], [1, 1, 1], "RRRSSS---"),
    (1, 1, &[6, 1], [7, 6, 5], "RR-SD----"),
    (1, 2, &[3, 1], [4, 3, 2], "R--D-----"),
    (1, 2, &[3, 1], [10, 9, 8], "R--D-----"),
    (2, 0, &[1], [2, 1, 1], "SSS------"),
    (2, 0, &[12, 1], [2, 1, 1], "SSS------"),
    (2, 1, &[6, 1], [8, 7, 6], "SD-------"),
    (2, 2, &[3, 1], [5, 4, 3], "D--------"),
    (2, 2, &[3, 1], [11, 10, 9], "D--------"),
];

fn letters(indications: Indications, targets: usize) -> String {
    let mut letters = String::new();
    for target in 0..targets {
        letters.push(match indications.get(target) {
            NotPresent => '-',
            Discardable => 'D',
            Switch => 'S',
            Required => 'R',
        });
    }
    letters
}

// [AV1-RTP §A.6.3]
#[test]
fn three_spatial_and_three_temporal_layers_are_as_the_standard_s_table() {
    let found = Structure::svc(3, 3, Prediction::Always).unwrap();
    assert_eq!((found.targets, found.chains, found.templates.len()), (9, 3, L3T3.len()));
    assert_eq!(found.protected_by, [2, 2, 2, 1, 1, 1, 0, 0, 0]);
    for (template, row) in found.templates.iter().zip(L3T3) {
        assert_eq!((template.spatial, template.temporal), (row.0, row.1));
        assert_eq!(template.references.differences(), row.2, "{row:?}");
        let chains = [0, 1, 2].map(|chain| template.chains.get(chain));
        assert_eq!(chains, row.3, "{row:?}");
        assert_eq!(letters(template.indications, 9), row.4, "{row:?}");
    }
    let layers: Vec<_> = (0..9).map(|target| found.layers(target)).collect();
    assert_eq!(layers[..4], [(2, 2), (2, 1), (2, 0), (1, 2)]);
    assert_eq!(found.best_target(1, u8::MAX), Some(3));
    assert_eq!(found.best_target(9, 0), Some(2));
}

/// What each template's frame really depends on, by counting frames.
#[test]
fn chains_and_references_of_every_mode_lead_to_the_right_frames() {
    for prediction in [Prediction::Always, Prediction::AtKeyFrames] {
        for (spatial, temporal) in [(1, 1), (1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2), (3, 3)]
        {
            let structure = Structure::svc(spatial, temporal, prediction).unwrap();
            check_mode(&structure, spatial);
        }
    }
    assert_eq!(Structure::svc(4, 1, Prediction::Always), None);
    assert_eq!(Structure::svc(1, 0, Prediction::Always), None);
}

fn check_mode(structure: &Structure, spatial_layers: u8) {
    let mut frames: Vec<Template> = Vec::new();
    let mut last_of_chain = vec![None; structure.chains];
    for picture in 0..9 {
        for spatial in 0..spatial_layers {
            let id = structure.svc_template(spatial, picture).unwrap();
            let frame = *structure.template(id).unwrap();
            assert_eq!(frame.spatial, spatial);
            let number = frames.len();
            for &back in frame.references.differences() {
                let other = &frames[number - usize::from(back)];
                assert!(other.temporal <= frame.temporal && other.spatial <= frame.spatial);
            }
            for (chain, last) in last_of_chain.iter_mut().enumerate() {
                let back = last.map_or(0, |last| number - last);
                assert_eq!(usize::from(frame.chains.get(chain)), back, "{number} {chain}");
                let target = structure.protected_by.iter().position(|&it| it as usize == chain);
                let is_part = frame.indications.get(target.unwrap()) != NotPresent;
                if frame.temporal == 0 && is_part {
                    *last = Some(number);
                }
            }
            frames.push(frame);
        }
    }
}

fn full(structure: Structure) -> Descriptor {
    Descriptor {
        starts_frame: true,
        ends_frame: false,
        template_id: 9,
        frame_number: 65_535,
        structure: Some(Box::new(structure)),
        active_targets: Some(0b1_1000),
        indications: Some(Indications::default().with(4, Required)),
        references: References::new(&[1, 17, 4_096]),
        chains: Some(Chains::default()),
    }
}

#[test]
fn what_is_written_is_read_and_every_truncation_is_refused() {
    let mut structure = Structure::svc(3, 3, Prediction::AtKeyFrames).unwrap();
    structure.first_id = 60;
    structure.sizes = vec![(320, 180), (640, 360), (1_280, 720)];
    let descriptor = full(structure.clone());
    let bytes = descriptor.emit(&structure);
    assert_eq!(Descriptor::parse(&bytes, None).as_ref(), Ok(&descriptor));
    for len in 0..bytes.len() {
        let found = Descriptor::parse(&bytes[..len], None);
        // Three bytes are a whole descriptor by themselves.
        assert!(found.is_err() || len == SHORT, "{len}: {found:?}");
    }
    assert_eq!(descriptor.frame(&structure).unwrap().spatial, 2);
}

// [AV1-RTP §A.4.1]
#[test]
fn a_short_descriptor_has_three_bytes_and_needs_no_structure() {
    let mut short = Descriptor::new(5, 0x1234);
    short.ends_frame = true;
    let structure = Structure::default();
    assert_eq!(short.emit(&structure), [0x45, 0x12, 0x34]);
    assert_eq!(Descriptor::parse(&[0x45, 0x12, 0x34], None), Ok(short.clone()));
    assert_eq!(short.frame(&structure), Err(Error::UnknownTemplate));
    let long = [0x45, 0x12, 0x34, 0x40, 0];
    assert_eq!(Descriptor::parse(&long, None), Err(Error::UnknownTemplate));
}

#[test]
fn numbers_are_shifted_in_place_and_wrap() {
    let mut structure = Structure::svc(2, 1, Prediction::Always).unwrap();
    structure.first_id = 63;
    let mut bytes = full(structure).emit(&Structure::default());
    let before = Descriptor::parse(&bytes, None).unwrap();
    shift(&mut bytes, 3, 10);
    let after = Descriptor::parse(&bytes, None).unwrap();
    assert_eq!((after.template_id, after.frame_number), (19, 2));
    assert_eq!(after.structure.as_ref().unwrap().first_id, 9);
    let mut expected = before;
    (expected.template_id, expected.frame_number) = (19, 2);
    expected.structure.as_mut().unwrap().first_id = 9;
    assert_eq!(after, expected, "nothing else changed");
    for len in 0..5 {
        let mut short = bytes[..len].to_vec();
        shift(&mut short, 1, 1);
    }
}

proptest! {
    #[test]
    fn what_is_read_is_written_with_the_same_meaning(
        bytes in prop::collection::vec(any::<u8>(), 0..200),
        mode in 1_u8..=3,
    ) {
        let known = Structure::svc(mode, mode, Prediction::Always).unwrap();
        if let Ok(found) = Descriptor::parse(&bytes, Some(&known)) {
            let again = found.emit(&known);
            prop_assert_eq!(Descriptor::parse(&again, Some(&known)), Ok(found));
        }
    }
}
