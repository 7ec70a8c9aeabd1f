use super::*;

const SIZE: (usize, usize) = (160, 90);

/// A pattern of waves that moves by a pixel with each step, with noise of this amplitude.
fn wave(step: usize, noise: u32) -> Luma {
    let mut state = 1_u32;
    let mut pixels = Vec::new();
    for y in 0..SIZE.1 {
        for x in 0..SIZE.0 {
            let phase = (x + step) as f64 / 7.0 + (y as f64 / 11.0).sin() * 3.0;
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let jitter = f64::from((state >> 24) * noise) / 255.0;
            pixels.push((118.0 + 90.0 * phase.sin() + jitter).clamp(0.0, 255.0) as u8);
        }
    }
    Luma::new(SIZE.0, SIZE.1, pixels).unwrap()
}

fn references() -> [Luma; 3] {
    [0, 1, 2].map(|step| wave(step, 0))
}

#[test]
fn psnr_is_that_of_the_mean_squared_error() {
    let flat = |luma| Luma::new(4, 4, vec![luma; 16]).unwrap();
    let reference = flat(100);
    let scores = score([&reference; 3], &flat(110)).unwrap();
    // 10 log10(255² / 10²)
    assert!((scores.psnr_db - 28.130_803_6).abs() < 1e-6, "{}", scores.psnr_db);
    assert_eq!(score([&reference; 3], &reference).unwrap().psnr_db, 60.0);
}

#[test]
fn a_picture_of_another_size_is_an_error() {
    let [a, b] = [4, 2].map(|side| Luma::new(side, side, vec![9; side * side]).unwrap());
    let error = score([&a; 3], &b).unwrap_err();
    assert_eq!(error, ScoreError::Sizes { received: (2, 2), reference: (4, 4) });
}

#[test]
fn a_smaller_picture_that_is_enlarged_is_close_and_a_flat_one_stays_flat() {
    let reference = wave(0, 0);
    let small = reference.scaled(80, 45);
    assert_eq!(small.size(), (80, 45));
    let back = small.scaled(SIZE.0, SIZE.1);
    assert!(reference.psnr_db(&back) > 30.0, "{}", reference.psnr_db(&back));
    let flat = Luma::new(7, 5, vec![77; 35]).unwrap();
    assert!(flat.scaled(31, 64).pixels().iter().all(|&luma| luma == 77));
}

#[test]
fn rows_are_cut_and_sizes_that_do_not_fit_are_none() {
    let picture = Luma::new(2, 3, vec![1, 2, 3, 4, 5, 6]).unwrap();
    assert_eq!(picture.below(1).unwrap().pixels(), [3, 4, 5, 6]);
    assert_eq!(picture.below(3), None);
    assert_eq!(picture.below(usize::MAX / 2), None);
    assert_eq!(Luma::new(2, 2, vec![0; 3]), None);
    assert_eq!(Luma::new(0, 2, vec![]), None);
}

#[cfg(feature = "libvmaf")]
#[test]
fn blur_lowers_each_score_and_an_equal_picture_has_the_best() {
    let references = references();
    let blurred = |by| wave(1, 0).scaled(SIZE.0 / by, SIZE.1 / by).scaled(SIZE.0, SIZE.1);
    let of = |by| score(references.each_ref(), &blurred(by)).unwrap();
    let (same, blurred, worse) = (of(1), of(10), of(18));
    assert!(same.vmaf > Some(95.0) && same.ssim > Some(0.999), "{same:?}");
    for scores in [[same, blurred], [blurred, worse]] {
        assert!(scores[0].vmaf > scores[1].vmaf, "{scores:?}");
        assert!(scores[0].vmaf_neg > scores[1].vmaf_neg, "{scores:?}");
        assert!(scores[0].ssim > scores[1].ssim, "{scores:?}");
        assert!(scores[0].psnr_db > scores[1].psnr_db, "{scores:?}");
    }
}

/// Why one received picture is enough: motion is that of the references.
#[cfg(feature = "libvmaf")]
#[test]
fn references_that_move_more_change_vmaf() {
    let [before, sent, after] = references();
    let received = wave(1, 0).scaled(16, 9).scaled(SIZE.0, SIZE.1);
    let moving = score([&before, &sent, &after], &received).unwrap();
    let still = score([&sent, &sent, &sent], &received).unwrap();
    assert_ne!(moving.vmaf, still.vmaf);
    assert_eq!((moving.ssim, moving.psnr_db), (still.ssim, still.psnr_db));
}

#[cfg(not(feature = "libvmaf"))]
#[test]
fn without_libvmaf_there_is_psnr_alone() {
    let scores = score(references().each_ref(), &wave(1, 20)).unwrap();
    assert_eq!((scores.vmaf, scores.vmaf_neg, scores.ssim), (None, None, None));
    assert!(!has_libvmaf() && scores.psnr_db > 20.0);
}
